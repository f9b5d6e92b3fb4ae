// SPDX-License-Identifier: Apache-2.0
// Runs all *_test.mjs of this folder, one after the other.
//
//   POSTRIDER_PROGRAM=build/dev/bin/postrider node tests/browser/run.mjs
//
// Exit code 77 tells ctest "skipped": there is no browser, or the program has no management API.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Server } from './harness.mjs';

const browser = process.env.CHROMIUM ?? '/usr/bin/chromium';
if (!existsSync(browser)) {
  console.log(`browser tests: skipped, there is no ${browser}. Hint: scripts/setup test`);
  process.exit(77);
}
const probe = await Server.start({ routes: false });
const { status } = await fetch(`${probe.url}/api/overview`);
await probe.remove();
if (status === 404) {
  console.log('browser tests: skipped, this program has no /api/overview');
  process.exit(77);
}
const folder = dirname(fileURLToPath(import.meta.url));
const files = readdirSync(folder).filter((name) => name.endsWith('_test.mjs')).sort();
const { status: code } = spawnSync(
  process.execPath,
  ['--test', '--test-concurrency=1', '--test-reporter=spec', ...files.map((name) => join(folder, name))],
  { stdio: 'inherit' },
);
process.exit(code ?? 1);
