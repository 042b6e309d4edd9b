// Makes pages nicer; every page works with this file absent.
{
  const $ = (selector, within = document) => within.querySelector(selector)
  const all = (selector, within = document) => [...within.querySelectorAll(selector)]
  const make = (tag, properties) => Object.assign(document.createElement(tag), properties)
  const button = (textContent, onclick) => make('button', { type: 'button', textContent, onclick })

  $('.summary')?.focus()

  // A list that updates by itself: when something changed, this page is read again and merged in, so that nothing a
  // person reads moves. Only while the tab is seen: a browser has six connections to a server for all tabs together.
  const list = $('[data-live]')
  if (list) {
    const status = $('.live[role=status]')
    let source, timer, due, took = 0

    const tell = (text) => {
      status.toggleAttribute('data-on', text === 'Live')
      if (status.textContent !== text) status.textContent = text
    }
    const busy = (element) => element.contains(document.activeElement)
    const ask = (url, Accept) => fetch(url, { headers: { Accept } })
    const isStruck = (row) => row.matches('.is-gone')
    const marked = (row) => { row.classList.add('is-fresh'); return row }
    const strike = (row) => {
      if (isStruck(row)) return
      row.classList.add('is-gone')
      row.cells[0].append(make('span', { className: 'sr', textContent: ' (no longer in this list)' }))
    }
    const isGone = async (row) => {
      const [, collection, id] = $('a', row).href.match(/^(.*)\/([^/]+)$/)
      const answer = await ask(`${collection}?id=${id}&fields=id`, 'application/json')
      return answer.ok && !(await answer.json()).length
    }
    const offer = (count) => {
      const text = count === 1 ? '1 new record. Show it' : `${count} new records. Show them`
      const onclick = () => { location.reload(); return false }
      const note = $('.fresh', list)
      if (!count) note.replaceChildren()
      else if (note.textContent !== text) note.replaceChildren(make('a', { href: location, textContent: text, onclick }))
    }

    // A row that is missing at an end where the list goes on may only have moved to the next page: that is asked, of
    // few. What comes after the last row that was seen is added; what comes between only raises a notice.
    const merge = async (fresh) => {
      const [now, then] = [list, fresh].map((within) => all('tbody > tr[id]', within))
      const [known, has] = [now, then].map((rows) => new Map(rows.map((row) => [row.id, row])))
      const kept = now.map((row) => has.has(row.id))
      const first = kept.indexOf(true), last = kept.lastIndexOf(true)
      const before = $('[rel=prev]', fresh), after = $('[rel=next]', fresh)
      const unsure = now.filter((row, at) => !kept[at] && !isStruck(row) && ((before && (first < 0 || at < first)) || (after && at > last)))
      const gone = await Promise.all(unsure.slice(0, 3).map(isGone))
      const moved = unsure.filter((row, at) => !gone[at])
      for (const row of now) {
        const other = has.get(row.id)
        if (!other && !moved.includes(row)) strike(row)
        else if (other && (isStruck(row) || row.innerHTML !== other.innerHTML) && !busy(row)) row.replaceWith(marked(other.cloneNode(true)))
      }
      const tail = moved.length ? -1 : then.findLastIndex((row) => known.has(row.id))
      const added = then.filter((row, at) => !known.has(row.id) && tail >= 0 && at > tail)
      $('tbody', list)?.append(...added.map((row) => marked(row.cloneNode(true))))
      offer(then.filter((row) => !known.has(row.id)).length - added.length)
      for (const part of ['caption', '.pager', '.downloads']) {
        const old = $(part, list), other = $(part, fresh)
        if (!other || (old && busy(old))) continue
        if (!old && part !== 'caption') list.append(other.cloneNode(true))
        else if (old && old.innerHTML !== other.innerHTML) old.innerHTML = other.innerHTML
      }
    }

    const read = async () => {
      const begun = performance.now()
      due = false
      try {
        const answer = await ask(location, 'text/html')
        const fresh = answer.ok && $('[data-live]', new DOMParser().parseFromString(await answer.text(), 'text/html'))
        if (fresh) await merge(fresh)
      } catch { /* The stream tells when the server is gone. */ }
      took = performance.now() - begun
      timer = 0
      if (due && source) soon()
    }
    const soon = () => {
      due = true
      timer ||= setTimeout(read, Math.max(200, 4 * took))
    }
    const open = () => {
      const mine = (source = new EventSource(list.dataset.live))
      mine.onopen = () => { tell('Live'); soon() }
      mine.onerror = () => {
        tell('Reconnecting')
        // The browser gives up where the answer was an error; the server may only be starting.
        if (mine.readyState === 2) setTimeout(() => source === mine && open(), 5000)
      }
      for (const deed of ['created', 'updated', 'deleted', 'reset']) mine.addEventListener(deed, soon)
    }
    const close = () => {
      source?.close()
      source = null
      tell('Paused')
    }
    const sync = () => { if (document.hidden) close(); else if (!source) open() }
    document.addEventListener('visibilitychange', sync)
    addEventListener('pagehide', close)
    addEventListener('pageshow', sync)
    sync()
  }

  // One press is one write; coming back to the page by the back button allows another.
  for (const form of all('form[data-once]')) {
    let sent = false
    const enable = (yes) => { sent = !yes; for (const each of all('button', form)) each.disabled = !yes }
    form.addEventListener('submit', (event) => {
      if (sent) return event.preventDefault()
      sent = true
      // The button that was pressed is sent only while it is enabled.
      setTimeout(enable, 0, false)
      setTimeout(enable, 10000, true)
    })
    form.addEventListener('keydown', (event) => {
      const find = event.key === 'Enter' && event.target.closest('.find')
      if (find) { event.preventDefault(); $('button', find).click() }
    })
    addEventListener('pageshow', () => enable(true))
  }

  // The key "/" goes to the search; whoever uses single keys otherwise can turn it off.
  const search = $('input[type=search]')
  if (search) {
    let off = false
    try { off = localStorage.slash === 'off' } catch { /* Then only here. */ }
    const said = make('li')
    const show = () => {
      const turn = button(off ? 'on' : 'off', () => {
        off = !off
        try { localStorage.slash = off ? 'off' : 'on' } catch { /* As above. */ }
        show().focus()
      })
      said.replaceChildren(make('kbd', { textContent: '/' }), ` to search${off ? ' is off' : ''}. Turn it\u00a0`, turn)
      search.ariaKeyShortcuts = off ? null : '/'
      return turn
    }
    show()
    // A finger has no such key.
    if (!matchMedia('(hover: none) and (pointer: coarse)').matches) $('.foot ul')?.append(said)
    addEventListener('keydown', (event) => {
      if (event.key !== '/' || off || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.('input, textarea, select, [contenteditable]')) return
      event.preventDefault()
      search.focus()
      search.select()
    })
  }

  if (navigator.clipboard) {
    for (const pre of all('pre[data-copy]')) {
      const copy = button('Copy', async () => {
        copy.textContent = await navigator.clipboard.writeText(pre.textContent).then(() => 'Copied', () => 'Not allowed')
        setTimeout(() => { copy.textContent = 'Copy' }, 2000)
      })
      copy.className = 'copy'
      copy.ariaLive = 'polite'
      $('figcaption', pre.parentElement).append(copy)
    }
  }
}
