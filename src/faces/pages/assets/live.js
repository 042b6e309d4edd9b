// Makes pages nicer; every page works with this file absent.
{
  const $ = (selector, within = document) => within.querySelector(selector)
  const all = (selector, within = document) => [...within.querySelectorAll(selector)]
  const append = (element, html) => { element.insertAdjacentHTML('beforeend', html); return element.lastElementChild }

  // A list that updates by itself: this page is read again and merged in, so that nothing a person reads moves.
  const list = $('[data-live]')
  if (list) {
    const status = $('.live[role=status]'), note = $('.fresh')
    let source, asked = 0, isHeld

    const say = (element, text, html = text) => { if (element.textContent !== text) element.innerHTML = html }
    const marked = (element) => { element.classList.add('is-fresh'); return element }

    // What comes after the last row is added, what comes between only told. A row that is missing at an end where the
    // list goes on may be on another page now.
    const merge = (fresh) => {
      const now = all('tbody tr:not(.is-gone)', list), then = all('tbody tr', fresh)
      const isKnown = ({ id }) => document.getElementById(id), found = ({ id }) => fresh.getElementById(id)
      const begins = !$('[rel=prev]', fresh), ends = !$('[rel=next]', fresh) || found(now.at(-1) ?? {})
      const added = ends ? then.slice(then.findLastIndex(isKnown) + 1 || then.length) : []
      const gone = now.filter((row, at) => !found(row) && (begins || now.slice(0, at).some(found)) && (ends || now.slice(at).some(found)))
      const count = then.filter((row) => !isKnown(row)).length - added.length
      const text = count ? `${count} new ${count === 1 ? 'record' : 'records'}. Show` : ''
      say(note, text, text && `<a href="">${text}</a>`)
      for (const row of gone) {
        row.classList.add('is-gone')
        append(row.cells[0], '<span class="sr"> (no longer in this list)</span>')
      }
      // What has the focus stays as it is until the focus leaves it.
      isHeld = false
      for (const old of all('[id]', list)) {
        const other = found(old)
        if (!other || old.innerHTML === other.innerHTML) continue
        if (old.contains(document.activeElement)) isHeld = true
        else old.replaceWith(marked(other))
      }
      $('tbody', list)?.append(...added.map(marked))
    }
    const read = async () => {
      const answer = await fetch(location, { headers: { Accept: 'text/html' } })
      if (answer.ok) merge(new DOMParser().parseFromString(await answer.text(), 'text/html'))
    }
    const soon = async () => {
      if ((asked += 1) > 1) return
      await read().catch(() => { /* The stream tells when the server is gone. */ })
      await new Promise((done) => setTimeout(done, 500))
      const isMore = asked > 1
      asked = 0
      if (isMore) soon()
    }

    // Only while the tab is seen: a browser has six connections to a server for all tabs together.
    const close = (why) => {
      source?.close()
      source = null
      say(status, why)
      delete status.dataset.on
    }
    const sync = () => {
      if (document.hidden) return close('Paused')
      if (source) return
      source = new EventSource(list.dataset.live)
      source.onopen = () => { say(status, 'Live'); status.dataset.on = ''; soon() }
      source.onerror = () => { close('Reconnecting'); setTimeout(sync, 3000) }
      for (const deed of ['created', 'updated', 'deleted', 'reset']) source.addEventListener(deed, soon)
    }
    list.addEventListener('focusout', () => { if (isHeld) soon() })
    document.addEventListener('visibilitychange', sync)
    sync()
  }

  // One press is one write; coming back to the page by the back button allows another.
  const arm = (form) => { form.onsubmit = () => { form.onsubmit = () => false; setTimeout(arm, 10000, form) } }
  addEventListener('pageshow', () => all('form[data-once]').forEach(arm))
  for (const find of all('.find')) find.onkeydown = ({ key }) => { if (key === 'Enter') { $('button', find).click(); return false } }

  for (const pre of navigator.clipboard ? all('pre[data-copy]') : []) {
    const copy = append($('figcaption', pre.parentElement), '<button type="button" class="btn quiet" aria-live="polite">Copy</button>')
    const tell = (text) => { copy.textContent = text; setTimeout(() => { copy.textContent = 'Copy' }, 2000) }
    copy.onclick = () => navigator.clipboard.writeText(pre.textContent).then(() => tell('Copied'), () => tell('Not allowed'))
  }

  // A key for who types, and a switch for who speaks to the computer.
  const search = $('[type=search]'), foot = $('.foot .wrap')
  if (search && foot) {
    const box = $('input', append(foot, '<label class="tick"><input type="checkbox"> Press / to search</label>'))
    box.checked = true
    try {
      box.checked = localStorage.slash !== 'false'
      box.onchange = () => { localStorage.slash = box.checked }
    } catch { /* Nothing may be kept: then only here. */ }
    addEventListener('keydown', (event) => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || !box.checked || event.target.matches('input, select, textarea')) return
      event.preventDefault()
      search.focus()
    })
  }
}
