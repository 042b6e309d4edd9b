// A headless Chromium that tells everything it was asked to load and everything it complained about.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']

/** Opens a page; `seen` holds the URLs it asked for, `complaints` console errors, exceptions and CSP violations. */
export async function open(options = {}) {
  const profile = mkdtempSync(join(tmpdir(), 'trefoil-chromium-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args: FLAGS,
    viewport: { width: 1280, height: 800 },
    ...options,
  })
  const page = context.pages()[0] ?? (await context.newPage())
  const seen = []
  const complaints = []
  page.on('request', (request) => seen.push(request.url()))
  page.on('websocket', (socket) => seen.push(socket.url()))
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(`exception: ${error.message}`))
  page.on('requestfailed', (request) => complaints.push(`failed: ${request.url()} ${request.failure()?.errorText}`))
  page.on('response', (response) => response.status() >= 400 && complaints.push(`${response.status()}: ${response.url()}`))
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`))
  })
  const close = async () => {
    await context.close()
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
  return { page, seen, complaints, close }
}
