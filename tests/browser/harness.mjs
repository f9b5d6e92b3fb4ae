// SPDX-License-Identifier: Apache-2.0
// postrider serve as a process, on SQLite in a folder of its own, and a real Chromium before it.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const { chromium } = createRequire(new URL('../../web/package.json', import.meta.url))('playwright-core');
const program = process.env.POSTRIDER_PROGRAM;
assert.ok(program, 'POSTRIDER_PROGRAM is the path of the program');

// The program refuses variables of ours that are none of its options.
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('POSTRIDER_')));

export const hostile = '<img src=x onerror="window.pwned=1">';

const freePort = () =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });

/// Until `look` gives something, or the test fails.
export async function until(what, look, seconds = 30) {
  const end = performance.now() + seconds * 1000;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    assert.ok(performance.now() < end, `waited ${seconds} s for ${what}`);
    await new Promise((resume) => setTimeout(resume, 50));
  }
}

export class Server {
  static async start({ routes = true, tokens = false, log = true } = {}) {
    const server = new Server();
    server.folder = mkdtempSync(join(tmpdir(), 'postrider-browser-'));
    server.port = await freePort();
    server.url = `http://127.0.0.1:${server.port}`;
    server.token = '';
    let text = `[node]\nname = "node-1"\n[storage]\nurl = "sqlite:${server.folder}/shop.db"\n[server]\nlisten = "127.0.0.1:${server.port}"\n`;
    if (tokens) {
      const file = join(server.folder, 'tokens');
      const out = execFileSync(program, ['token', 'create', '--file', file, '--name', 'anna', '--role', 'admin'], {
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      }).toString();
      server.token = /prt_[\w-]+/.exec(out)[0];
      text += `token-file = "${file}"\n`;
    }
    if (routes) {
      const spill = join(server.folder, 'spill');
      mkdirSync(spill);
      writeFileSync(join(spill, 'eventlog-spillover.jsonl'), `{"applicationId":"shop"}\n{"applicationId":"shop"}\n`);
      writeFileSync(join(spill, 'eventlog-spillover.dead.jsonl'), `{"status":400,"reason":"${hostile.replaceAll('"', '')}"}\n`);
      text += `[spill]\nfolders = ["${spill}", "${server.folder}/nowhere"]\n`;
    }
    if (log) text += '[eventlog]\nenabled = true\n';
    if (routes) {
      text += `[sinks.orders-file]\ntype = "file"\npath = "${server.folder}/orders.jsonl"
[[outbox.routes]]\ntype = "OrderPlaced"\nsink = "orders-file"
[relay.topics.wallet-events]\nrequired-tags = ["wallet"]\npublishers = ["orders-file"]
[relay.topics.audit-events]\nrequired-tags = ["user"]\npublishers = ["orders-file"]\n`;
    }
    server.config = join(server.folder, 'postrider.toml');
    writeFileSync(server.config, text);
    await server.up();
    return server;
  }

  async up() {
    this.process = spawn(program, ['serve', '-c', this.config], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.said = '';
    for (const stream of [this.process.stdout, this.process.stderr]) stream.on('data', (part) => (this.said += part));
    this.gone = new Promise((resolve) => this.process.once('exit', resolve));
    await until('the server', async () => {
      assert.equal(this.process.exitCode, null, this.said);
      return fetch(`${this.url}/readyz`).then((answer) => answer.ok, () => false);
    });
  }

  /// Another token of this server, which reads the file again.
  async addToken(name, role) {
    const out = execFileSync(program, ['token', 'create', '--file', join(this.folder, 'tokens'), '--name', name, '--role', role], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    }).toString();
    const token = /prt_[\w-]+/.exec(out)[0];
    this.process.kill('SIGHUP');
    await until('the new token', async () =>
      (await fetch(`${this.url}/api/me`, { headers: { Authorization: `Bearer ${token}` } })).ok);
    return token;
  }

  async down(signal = 'SIGTERM') {
    this.process.kill(signal);
    await this.gone;
  }

  async remove() {
    await this.down();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async send(path, body, method = 'POST') {
    const answer = await fetch(this.url + path, {
      method,
      headers: {
        Connection: 'close', // no race with a server that closes what is idle
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(this.token ? { Authorization: `Bearer ${this.token}` } : {}),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text);
  }
  get = (path) => this.send(path, undefined, 'GET');

  async publish(events) {
    for (let at = 0; at < events.length; at += 1000) {
      await this.send('/api/events', { events: events.slice(at, at + 1000) });
    }
  }

  /// For what has no way in but a program's own transaction.
  sql(statement) {
    execFileSync('python3', [
      '-c',
      'import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], timeout=20)\nc.executescript(sys.argv[2])\nc.commit()',
      join(this.folder, 'shop.db'),
      statement,
    ]);
  }

  /// Events that the publisher of wallet-events did not take: those at these positions.
  refuse(positions) {
    const at = `CAST(strftime('%s', 'now') AS INTEGER) * 1000000`;
    this.sql(
      positions
        .map((position) => `INSERT INTO postrider_outbox_dead_letter (topic, publisher, position, error, failed_at)
          VALUES ('wallet-events', 'orders-file', ${position}, 'refused: ${hostile}', ${at});`)
        .join('\n'),
    );
  }

  /// A little of everything.
  async seed({ strange: withStrange = true } = {}) {
    const orders = Array.from({ length: 40 }, (_, i) => ({
      type: 'OrderPlaced',
      payload: { id: i, note: 'Größe "L"', lines: [{ sku: 'A-1', price: 12.5 }], paid: true, coupon: null },
      aggregateType: 'Order',
      aggregateId: `order-${i}`,
      tenantId: i % 2 ? 'north' : 'south',
      headers: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' },
    }));
    const lost = Array.from({ length: 12 }, (_, i) => ({ type: 'OrderLost', payload: { id: i } }));
    const strange = { id: 'strange-1', type: hostile, payload: { html: hostile }, aggregateId: hostile, headers: { x: hostile } };
    await this.publish(withStrange ? [...orders, ...lost, strange] : [...orders, ...lost]);
    await this.send('/append', {
      events: Array.from({ length: 60 }, (_, i) => ({
        type: i % 3 ? 'Credited' : 'Debited',
        tags: [`wallet=${i % 5}`, ...(i % 10 ? [] : ['user=7'])],
        data: `{"amount":${i}}`,
      })),
    });
    await this.send('/append', { events: [{ type: hostile, tags: [`wallet=${hostile}`], data: hostile }] });
    await this.send('/v1/events', {
      applicationId: 'shop', processName: hostile, processStatus: 'STARTED', details: hostile, correlationId: 'c-1',
    });
    await this.send('/v1/events', {
      applicationId: 'shop', processName: 'checkout', processStatus: 'DONE', timestamp: new Date(Date.now() - 3600e3).toISOString(),
    });
    const past = `(CAST(strftime('%s', 'now') AS INTEGER) - 3600) * 1000000`;
    const later = `(CAST(strftime('%s', 'now') AS INTEGER) + 3600) * 1000000`;
    this.sql(`
      INSERT INTO postrider_event_queue (event_id, event_type, payload) VALUES ('q-1', 'MailWanted', '{"to":"a@example.org"}');
      INSERT INTO postrider_event_queue (event_id, event_type, payload, status, attempts, token, processing_started_at, owner, lease_until)
        VALUES ('q-2', 'MailStuck', '{}', 1, 1, 1, ${past}, 'worker-1', ${later});
      INSERT INTO postrider_event_queue (event_id, event_type, payload, crashes, attempts, last_error, quarantined_at)
        VALUES ('q-3', 'MailKiller', '{}', 5, 5, 'the worker died', ${past});
      INSERT INTO postrider_event_log (id, token, event_id, event_type, payload, status, priority, attempts, crashes, created_at,
          occurred_at, processing_started_at, finalized_at, results)
        VALUES (1000, 1, 'q-0', 'MailFailed', '{"to":"b@example.org"}', 4, 0, 3, 0, ${past}, ${past}, ${past}, ${past},
          '[{"handler":"mailer","result":2,"failed":0,"error":"no such mailbox"}]');`);
    await until('dead letters', async () => (await this.get('/api/outbox/counts')).dead === (withStrange ? 13 : 12));
    await until('deliveries', async () => (await this.get('/api/outbox/counts')).done === 40);
  }
}

export async function openBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
}

/// A page that notes what must not happen: policy violations, script errors, scripts of strangers.
export async function openPage(browser, server, options = {}) {
  const { path = '/ui', allow = [], ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...rest });
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.url });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const complaints = [];
  const complain = (text) => {
    complaints.push(text);
    console.log(`${path}: ${text}`); // also when the test fails before its end
  };
  page.on('pageerror', (error) => complain(`page error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() !== 'error' && message.type() !== 'warning') return;
    if (allow.some((one) => one.test(message.text()))) return;
    complain(`console: ${message.text()}`);
  });
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
  });
  await page.goto(server.url + path);
  page.finish = async () => {
    assert.equal(await page.evaluate(() => window.pwned), undefined, 'a script of a stranger ran');
    await context.close();
    assert.deepEqual(complaints, []);
  };
  return page;
}

export const title = (page, text) => page.getByRole('heading', { level: 1, name: text }).waitFor();

/// Texts whose contrast to what is behind them is below WCAG AA.
export function lowContrasts(page) {
  return page.evaluate(() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgba = (color) => {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = ([r, g, b]) => {
      const [x, y, z] = [r, g, b].map((one) => (one / 255 <= 0.03928 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const ground = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const color = rgba(getComputedStyle(at).backgroundColor);
        if (color[3] === 255) return color;
      }
      return rgba(getComputedStyle(document.documentElement).backgroundColor);
    };
    const low = new Set();
    for (const element of document.querySelectorAll('body *')) {
      if (![...element.childNodes].some((one) => one.nodeType === 3 && one.data.trim())) continue;
      if (!element.checkVisibility() || element.closest(':disabled, .sr, .skip')) continue;
      const [a, b] = [light(rgba(getComputedStyle(element).color)), light(ground(element))];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (contrast < 4.5) low.add(`${contrast.toFixed(2)} ${element.className} ${element.textContent.slice(0, 30)}`);
    }
    return [...low];
  });
}
