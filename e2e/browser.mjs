// A headless Chromium that tells everything it was asked to load and everything it complained about.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { chromium } from 'playwright-core'

const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']
const PROGRAM = process.env.CHROMIUM ?? '/usr/bin/chromium'
/** Chromium without windows of its own, where there is one: a page takes it a third of the time. */
const SHELL = process.env.CHROMIUM_SHELL ?? PROGRAM
const VIEWPORT = { width: 1280, height: 800 }

/** Opens a page; `seen` holds the URLs it asked for, `complaints` console errors, exceptions and CSP violations. */
export async function open(options = {}) {
  const profile = newProfile()
  const context = await chromium.launchPersistentContext(profile.path, { ...program(), viewport: VIEWPORT, ...options })
  const page = context.pages()[0] ?? (await context.newPage())
  const { seen, complaints } = await watch(page)
  page.on('response', (response) => response.status() >= 400 && complaints.push(`${response.status()}: ${response.url()}`))
  const close = async () => {
    await context.close()
    await profile.remove()
  }
  return { page, seen, complaints, close }
}

/** A browser for any number of people: each `context()` has its own cookies and settings. */
export async function launch() {
  const browser = await chromium.launch(program())
  return {
    context: (options = {}) => browser.newContext({ viewport: VIEWPORT, ...options }),
    close: () => browser.close(),
  }
}

/**
 * One window with real tabs: only the one in front is visible, as document.visibilityState tells.
 * (Playwright's own pages all believe that they are in front.)
 */
export async function tabs() {
  const profile = newProfile()
  const flags = [...FLAGS, '--headless=new', '--remote-debugging-port=0', `--user-data-dir=${profile.path}`, 'about:blank']
  const child = spawn(PROGRAM, flags, { stdio: ['ignore', 'ignore', 'pipe'] })
  const exited = once(child, 'exit')
  const address = await debuggerOf(child)
  const browser = await chromium.connectOverCDP(address, { noDefaults: true })
  const context = browser.contexts()[0]
  const close = async () => {
    await browser.close()
    child.kill()
    await exited
    await profile.remove()
  }
  return { first: context.pages()[0], context, port: Number(new URL(address).port), close }
}

/** Notes what `page` asks for and complains about. */
export async function watch(page) {
  const seen = []
  const complaints = []
  page.on('request', (request) => seen.push(request.url()))
  page.on('websocket', (socket) => seen.push(socket.url()))
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(`exception: ${error.message}`))
  page.on('requestfailed', (request) => complaints.push(`failed: ${request.url()} ${request.failure()?.errorText}`))
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`))
  })
  return { seen, complaints }
}

function program() {
  return { executablePath: SHELL, headless: true, args: FLAGS }
}

function newProfile() {
  const path = mkdtempSync(join(tmpdir(), 'trefoil-chromium-'))
  // Chromium's children write on for a moment after it has gone.
  const remove = async () => {
    for (let left = 100; ; left -= 1) {
      try {
        return rmSync(path, { recursive: true, force: true })
      } catch (error) {
        if (!left) throw error
        await sleep(100)
      }
    }
  }
  return { path, remove }
}

/** Chromium says on standard error where its tools can connect. */
function debuggerOf(child) {
  return new Promise((resolve, reject) => {
    let printed = ''
    child.stderr.setEncoding('utf8').on('data', (text) => {
      printed += text
      const found = /ws:\/\/\S+/.exec(printed)
      if (found) resolve(found[0])
    })
    child.once('exit', () => reject(new Error(`${PROGRAM} ended:\n${printed}`)))
  })
}
