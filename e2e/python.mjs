// Virtual environments of Python for the tools that are written in it.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const CACHE = new URL('./.cache', import.meta.url).pathname

/** The folder of the environment with what `requirements.txt` in `folder` names, made where it is not there yet. */
export function environment(name, folder) {
  const requirements = join(folder, 'requirements.txt')
  const digest = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 16)
  const place = join(CACHE, `${name}-${digest}`)
  if (existsSync(join(place, 'complete'))) return place
  mkdirSync(CACHE, { recursive: true })
  rmSync(place, { recursive: true, force: true })
  execFileSync('python3', ['-m', 'venv', place], { stdio: 'inherit' })
  const options = ['--quiet', '--disable-pip-version-check', '--require-hashes', '--only-binary', ':all:']
  execFileSync(join(place, 'bin/pip'), ['install', ...options, '-r', requirements], { stdio: 'inherit' })
  mkdirSync(join(place, 'complete'))
  return place
}
