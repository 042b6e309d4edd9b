//! The templates: the built-in ones, and an application's own in their place.

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

use crate::model::SourceFile;

/// Compiled once; a view that is broken breaks no other.
pub struct Views {
    environment: Environment<'static>,
}

/// Why a view cannot be shown, with its file and line.
#[derive(Debug)]
pub struct Broken(pub String);

const BUILT_IN: [(&str, &str); 0] = [];

impl Views {
    pub fn new(own: &[SourceFile]) -> Views {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        for (name, text) in BUILT_IN {
            environment.add_template(name, text).expect("built-in templates are compiled by a test");
        }
        for view in own {
            let _ = environment.add_template_owned(view.name.clone(), view.text.clone());
        }
        Views { environment }
    }

    pub fn render(&self, name: &str, context: Value) -> Result<String, Broken> {
        let template = self.environment.get_template(name).map_err(|error| Broken(error.to_string()))?;
        template.render(context).map_err(|error| Broken(error.to_string()))
    }
}
