//! The floor of any server built on hyper: answers each request with recorded bytes and does nothing else.
//!
//!     floor-hyper PORT FOLDER bare|headers
//!
//! `bare` sends the content type alone, `headers` all headers of the recorded answer.

mod answers;

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::Path;
use std::rc::Rc;

use answers::Answers;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;

type Ready = HashMap<String, (HeaderMap, Bytes)>;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let port: u16 = arguments[1].parse().expect("a port");
    let ready = Rc::new(ready(&Answers::read(Path::new(&arguments[2])), arguments[3] == "bare"));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
    let serve = async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let _ = stream.set_nodelay(true);
            let ready = ready.clone();
            tokio::task::spawn_local(async move {
                let service = service_fn(move |request| answer(request, ready.clone()));
                let mut builder = hyper::server::conn::http1::Builder::new();
                let _ = builder.pipeline_flush(true).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    };
    tokio::task::LocalSet::new().run_until(serve).await;
}

fn ready(answers: &Answers, bare: bool) -> Ready {
    let sent = |name: &String| {
        let answer = answers.get(name)?;
        let mut headers = HeaderMap::new();
        for (header, value) in &answer.headers {
            if !bare || header.eq_ignore_ascii_case("content-type") {
                headers.append(HeaderName::try_from(header).ok()?, HeaderValue::try_from(value).ok()?);
            }
        }
        Some((name.clone(), (headers, Bytes::from(answer.body.clone()))))
    };
    answers.names().filter_map(sent).collect()
}

async fn answer(request: Request<Incoming>, ready: Rc<Ready>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = match head.method {
        Method::GET => Bytes::new(),
        _ => body.collect().await.map(|body| body.to_bytes()).unwrap_or_default(),
    };
    let name = answers::name(head.method.as_str(), head.uri.path(), &body);
    let Some((headers, body)) = ready.get(name) else {
        let mut response =
            Response::new(Full::new(Bytes::from_static(b"nothing was recorded for this request")));
        *response.status_mut() = hyper::StatusCode::NOT_FOUND;
        return Ok(response);
    };
    let mut response = Response::new(Full::new(body.clone()));
    *response.headers_mut() = headers.clone();
    Ok(response)
}
