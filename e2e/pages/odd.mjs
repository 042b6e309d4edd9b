// Inputs that have broken pages elsewhere, and the eyes that see whether they broke ours: a browser's own HTML parser.

export const ODD = {
  empty: '',
  blank: ' \t ',
  'ten thousand characters': 'lorem ipsum '.repeat(834).slice(0, 10_000),
  'one very long word': 'Donaudampfschifffahrt'.repeat(40),
  markup: '<x-odd onclick=alert(1)>bold</x-odd><img src=x onerror=alert(2)><!-- </textarea></title></select></script><x-odd>',
  'a way out of an attribute': `" x-odd="1" autofocus onfocus="alert(3)' x-odd='2' onfocus='alert(4)`,
  script: '</script><script>alert(5)</script><svg/onload=alert(6)>',
  'an address that is a program': 'javascript:alert(7)//https://example.com',
  entities: '&lt;b&gt; &amp;amp; &#x3C;x-odd&#x3E; &nbsp;',
  emoji: '👩‍👩‍👧‍👦 🏴‍☠️ ❤️‍🔥 é ﷽ Z̷͎͐a̵l̶g̸o̵',
  'right to left': 'שלום \u202Eevil\u202C مرحبا \u2066x\u2069',
  SQL: `'; DROP TABLE users; -- " OR "1"="1" /* %_\\`,
  'a null character': 'nul\u0000l',
  'control characters': 'bell\u0007 escape\u001B[31m delete\u007F next\u0085 line\u2028separator',
  'templating syntax': '{{7*7}} {{ site.name }} {% include "layout.html" %} {# x #} ${7*7} #{7*7} <%= 7*7 %>',
  'lines of several kinds': '\r\none\ntwo\r\nthree\n\n',
  'a number too great': '99999999999999999999999999999999',
  'a path': '../../../etc/passwd%2e%2e%2f\\..\\',
}

/** Has `page` read the answers: for each what should not be in it, the values of its controls, and its text. */
export function read(page, answers) {
  return page.evaluate((all) => {
    const strange = (element) =>
      /^(x-odd|img|style|iframe|object|embed|base|math|template|noscript)$/.test(element.localName) ||
      (element.localName === 'script' && !element.getAttribute('src')?.startsWith('/_/pages/')) ||
      element.getAttributeNames().some((name) => /^on|^x-odd|^style$/.test(name)) ||
      ['href', 'src', 'action', 'formaction'].some((name) => /^\s*(javascript|data|vbscript):/i.test(element.getAttribute(name) ?? ''))
    const value = (element) => (element.localName === 'textarea' ? element.value : element.getAttribute('value'))
    const isTyped = (element) => element.localName === 'textarea' || /^(text|search|email|url|date|datetime-local|number|tel)$/.test(element.type)
    return all.map((html) => {
      const parsed = new DOMParser().parseFromString(html, 'text/html')
      const controls = [...parsed.querySelectorAll('main input, main textarea, main select')].filter((element) => element.name && element.type !== 'hidden')
      return {
        strange: [...parsed.querySelectorAll('*')].filter(strange).map((element) => element.outerHTML.slice(0, 200)),
        names: [...new Set(controls.map((element) => element.name))],
        typed: controls.filter(isTyped).map((element) => [element.name, value(element)]),
        text: parsed.body.textContent,
      }
    })
  }, answers)
}

/** What HTML itself cannot carry: other line ends than its own, and the null character. */
export function carried(text) {
  return text.replace(/\r\n?/g, '\n').replaceAll('\0', '\uFFFD')
}

export function spaces(text) {
  return text.replace(/\s+/g, ' ').trim()
}
