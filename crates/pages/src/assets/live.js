// Enhancements; every page works without this file.
{
  const $ = (selector, within = document) => within.querySelector(selector)
  const all = (selector, within = document) => [...within.querySelectorAll(selector)]
  const append = (element, html) => { element.insertAdjacentHTML('beforeend', html); return element.lastElementChild }

  for (const pre of navigator.clipboard ? all('.code pre') : []) {
    const copy = append(pre.previousElementSibling, '<button type="button" class="btn quiet" aria-live="polite">Copy</button>')
    const tell = (text) => { copy.textContent = text; setTimeout(() => { copy.textContent = 'Copy' }, 2000) }
    copy.onclick = () => navigator.clipboard.writeText(pre.textContent).then(() => tell('Copied'), () => tell('Not allowed'))
  }

  // The return key in a search field searches, even for the same text again.
  for (const find of all('.find')) find.onkeydown = ({ key }) => { if (key === 'Enter') { $('button', find).click(); return false } }

  // A list that updates by itself: the page is fetched again and merged, so that no visible row moves.
  const list = $('[data-live]')
  if (list) {
    const status = $('.live'), note = $('.fresh')
    let source, isReading, isStale, isHeld

    const say = (element, html) => { if (element.innerHTML !== html) element.innerHTML = html }
    const marked = (element) => { element.classList.add('is-fresh'); return element }

    // New rows after the last one are added; new rows in between are only announced. A row missing at an end where the
    // list continues may be on another page now. A row with the focus stays as it is until it loses the focus.
    const merge = (fresh) => {
      const now = all('tbody tr:not(.is-gone)', list), then = all('tbody tr', fresh)
      const isKnown = ({ id }) => document.getElementById(id), found = ({ id }) => fresh.getElementById(id)
      const begins = !$('[rel=prev]', fresh), ends = !$('[rel=next]', fresh) || found(now.at(-1) ?? {})
      const added = ends ? then.slice(then.findLastIndex(isKnown) + 1 || then.length) : []
      const gone = now.filter((row, at) => !found(row) && (begins || now.slice(0, at).some(found)) && (ends || now.slice(at).some(found)))
      const count = then.filter((row) => !isKnown(row)).length - added.length
      say(note, count ? `<a class="btn" href="">${count} new in this list. Show</a>` : '')
      for (const row of gone) {
        row.classList.add('is-gone')
        append(row.cells[0], '<span class="sr"> (no longer in this list)</span>')
      }
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
      isStale = true
      if (isReading) return
      isReading = true
      while (isStale) {
        isStale = false
        try {
          const answer = await fetch(location, { headers: { Accept: 'text/html' } })
          if (answer.ok) merge(new DOMParser().parseFromString(await answer.text(), 'text/html'))
        } catch { /* The next event tries again. */ }
        await new Promise((done) => setTimeout(done, 500))
      }
      isReading = false
    }

    // Only while the tab is visible: a browser has six connections to a server for all tabs together.
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
      source.onopen = () => { say(status, 'Live'); status.dataset.on = ''; read() }
      source.onerror = () => { close('Reconnecting'); setTimeout(sync, 3000) }
      for (const deed of ['created', 'updated', 'deleted', 'reset']) source.addEventListener(deed, read)
    }
    list.addEventListener('focusout', () => { if (isHeld) read() })
    document.addEventListener('visibilitychange', sync)
    sync()
  }
}
