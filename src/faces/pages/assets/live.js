// Makes pages nicer; every page works with this file absent.
(() => {
  'use strict'
  const $ = (selector, within = document) => within.querySelector(selector)
  const all = (selector, within = document) => [...within.querySelectorAll(selector)]

  $('.summary')?.focus()

  // A list that updates by itself: when something changed, this page is read again and merged in, so that nothing a
  // person reads moves. Only while the tab is seen: a browser has six connections to a server for all tabs together.
  const list = $('[data-live]')
  if (list && window.EventSource) {
    const status = $('.live[role=status]')
    const missed = new Set()
    let source, timer, reading, again, took = 0

    const tell = (text) => {
      status.toggleAttribute('data-on', text === 'Live')
      if (status.textContent !== text) status.textContent = text
    }
    const rows = (within) => all('tbody > tr[id]', within)
    const busy = (element) => element.contains(document.activeElement)

    const offer = () => {
      const note = $('.fresh', list)
      const text = missed.size === 1 ? '1 new record. Show it' : `${missed.size} new records. Show them`
      if (!missed.size) return note.replaceChildren()
      if (note.textContent === text) return
      const link = document.createElement('a')
      link.href = location.href
      link.textContent = text
      link.addEventListener('click', (event) => { event.preventDefault(); location.reload() })
      note.replaceChildren(link)
    }

    const mark = (row) => { row.classList.add('is-fresh'); return row }
    const strike = (row) => {
      if (row.classList.contains('is-gone')) return
      row.classList.add('is-gone')
      const said = document.createElement('span')
      said.className = 'sr'
      said.textContent = ' (no longer in this list)'
      row.cells[0].append(said)
    }

    const isGone = async (row) => {
      const [, collection, id] = $('a', row).href.match(/^(.*)\/([^/]+)$/)
      const answer = await fetch(`${collection}?id=${id}&fields=id`, { headers: { Accept: 'application/json' }, signal: reading.signal })
      return answer.ok && (await answer.json()).length === 0
    }

    // A row that is missing at an end where the list goes on may only have moved to the next page: that is asked, of
    // few. What comes after the last row that was seen is added; what comes between only raises a notice.
    const merge = async (fresh) => {
      const body = $('tbody', list)
      const now = rows(list), then = rows(fresh)
      const has = new Map(then.map((row) => [row.id, row]))
      const known = new Set(now.map((row) => row.id))
      const common = now.map((row) => has.has(row.id))
      const first = common.indexOf(true), last = common.lastIndexOf(true)
      const before = $('[rel=prev]', fresh), after = $('[rel=next]', fresh)
      const unsure = now.filter((row, at) => !common[at] && !row.classList.contains('is-gone')
        && (first < 0 ? before || after : (at < first && before) || (at > last && after)))
      const gone = await Promise.all(unsure.slice(0, 3).map(isGone))
      const moved = new Set(unsure.filter((row, at) => !gone[at]))
      for (const row of now) {
        const other = has.get(row.id)
        if (!other && !moved.has(row)) strike(row)
        else if (other && (row.classList.contains('is-gone') || row.innerHTML !== other.innerHTML) && !busy(row)) row.replaceWith(mark(other.cloneNode(true)))
      }
      const tail = then.findLastIndex((row) => known.has(row.id))
      const goesOn = body && !moved.size && tail >= 0
      missed.clear()
      then.forEach((row, at) => {
        if (known.has(row.id)) return
        if (goesOn && at > tail) body.append(mark(row.cloneNode(true)))
        else missed.add(row.id)
      })
      for (const part of ['caption', '.pager', '.downloads']) {
        const old = $(part, list), other = $(part, fresh)
        if (old && busy(old)) continue
        if (old && other && old.innerHTML !== other.innerHTML) old.replaceChildren(...other.cloneNode(true).childNodes)
        else if (other && !old && part !== 'caption') list.append(other.cloneNode(true))
      }
      offer()
    }

    const read = async () => {
      timer = 0
      const begun = performance.now()
      reading = new AbortController()
      try {
        const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, signal: reading.signal })
        const fresh = answer.ok && new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('[data-live]')
        if (fresh) await merge(fresh)
      } catch { /* The stream tells when the server is gone. */ }
      took = performance.now() - begun
      reading = null
      if (again && source) soon()
    }
    const soon = () => {
      again = Boolean(reading)
      if (!reading && !timer) timer = setTimeout(read, Math.max(200, 4 * took))
    }

    const open = () => {
      source = new EventSource(list.dataset.live)
      source.onopen = () => { tell('Live'); soon() }
      source.onerror = () => {
        tell('Reconnecting')
        // The browser gives up where the answer was an error; the server may only be starting.
        if (source?.readyState === EventSource.CLOSED) { const mine = source; setTimeout(() => { if (source === mine) open() }, 5000) }
      }
      for (const deed of ['created', 'updated', 'deleted', 'reset']) source.addEventListener(deed, soon)
    }
    const close = () => {
      source?.close()
      reading?.abort()
      clearTimeout(timer)
      source = timer = again = null
      tell('Paused')
    }
    const sync = () => {
      if (document.visibilityState !== 'visible') close()
      else if (!source) open()
    }
    document.addEventListener('visibilitychange', sync)
    addEventListener('pagehide', close)
    addEventListener('pageshow', sync)
    sync()
  }

  // One press is one write; coming back to the page by the back button allows another.
  const forms = all('form[data-once]')
  const enable = (form, yes) => {
    form.toggleAttribute('data-sent', !yes)
    for (const button of all('button', form)) button.disabled = !yes
  }
  for (const form of forms) {
    form.addEventListener('submit', (event) => {
      if (form.hasAttribute('data-sent')) return event.preventDefault()
      form.setAttribute('data-sent', '')
      setTimeout(() => enable(form, false))
      setTimeout(() => enable(form, true), 10000)
    })
    form.addEventListener('keydown', (event) => {
      const find = event.key === 'Enter' && event.target.closest('.find')
      if (find) { event.preventDefault(); $('button', find).click() }
    })
  }
  addEventListener('pageshow', () => forms.forEach((form) => enable(form, true)))

  // The key "/" goes to the search; whoever uses single keys otherwise can turn it off.
  const search = $('input[type=search]')
  if (search) {
    const kept = { get: () => { try { return localStorage.slash } catch { return '' } }, set: (value) => { try { localStorage.slash = value } catch { /* Then only here. */ } } }
    let off = kept.get() === 'off'
    const said = document.createElement('li')
    const show = () => {
      const key = document.createElement('kbd'), button = document.createElement('button')
      key.textContent = '/'
      button.type = 'button'
      button.textContent = off ? 'on' : 'off'
      button.addEventListener('click', () => { off = !off; kept.set(off ? 'off' : 'on'); show(); $('button', said).focus() })
      said.replaceChildren(key, off ? ' to search is off. Turn it\u00a0' : ' to search. Turn it\u00a0', button)
      if (off) search.removeAttribute('aria-keyshortcuts')
      else search.setAttribute('aria-keyshortcuts', '/')
    }
    show()
    $('.foot ul')?.append(said)
    addEventListener('keydown', (event) => {
      const typing = event.target.closest?.('input, textarea, select, [contenteditable]')
      if (event.key !== '/' || off || typing || event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault()
      search.focus()
      search.select()
    })
  }

  if (navigator.clipboard) {
    for (const pre of all('pre[data-copy]')) {
      const button = document.createElement('button')
      button.type = 'button'
      button.className = 'copy'
      button.textContent = 'Copy'
      button.setAttribute('aria-live', 'polite')
      button.addEventListener('click', async () => {
        try { await navigator.clipboard.writeText(pre.textContent); button.textContent = 'Copied' } catch { button.textContent = 'Not allowed' }
        setTimeout(() => { button.textContent = 'Copy' }, 2000)
      })
      pre.parentElement.querySelector('figcaption').append(button)
    }
  }
})()
