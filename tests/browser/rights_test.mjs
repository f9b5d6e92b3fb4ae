// SPDX-License-Identifier: Apache-2.0
// What the page offers to whom: by the role of the token that the tab has.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { lowContrasts, openBrowser, openPage, Server, until } from './harness.mjs';

let browser, server;
before(async () => {
  browser = await openBrowser();
  server = await Server.start({ tokens: true });
  await server.seed();
});
after(async () => {
  await browser?.close();
  await server?.remove();
});

const pair = () => server.get('/api/topics/wallet-events/publishers/orders-file');

/// The page as somebody with this token sees it, and what it has asked to be changed.
async function pageOf(name, role, path) {
  const token = await server.addToken(name, role);
  const page = await openPage(browser, server, { path: '/ui', allow: [/401/] });
  await page.getByRole('dialog').getByLabel('Token').fill(token);
  await page.getByRole('dialog').getByRole('button', { name: 'Use it' }).click();
  await page.locator('.who').getByText(`${name}, ${role}`).waitFor();
  await page.goto(server.url + path);
  await page.locator('.who').getByText(`${name}, ${role}`).waitFor();
  page.changes = [];
  page.on('request', (request) => request.method() === 'POST' && page.changes.push(request.url()));
  return page;
}

/// Says which role it takes, to whoever points at it, reaches it by keyboard, or tries.
async function assertRefused(page, button, role) {
  await until('the page to know', async () => (await button.getAttribute('aria-disabled')) === 'true');
  const reason = new RegExp(`This needs the role ${role}; the token of \\w+ has the role \\w+\\.`);
  assert.match(await button.getAttribute('title'), reason);
  await button.focus();
  await page.keyboard.press('Enter');
  await page.locator('.toast.bad').getByText(reason).waitFor();
  assert.equal(await page.getByRole('dialog').count(), 0);
  assert.deepEqual(page.changes, []);
}

test('Who may only look sees which role each action needs', async () => {
  const page = await pageOf('vera', 'viewer', '/ui/topics');
  await assertRefused(page, page.getByRole('button', { name: 'Pause wallet-events to orders-file' }), 'operator');
  assert.deepEqual(await lowContrasts(page), []);
  const views = [
    ['/ui/topics/wallet-events/orders-file', /^(Pause|Reset errors|Rewind…)$/, 3],
    ['/ui/dead', /^Replay all…$/, 1],
    ['/ui/events/strange-1', /^Replay$/, 1],
    ['/ui/queue?list=quarantine', /^(Release|Cancel event)/, 2],
    ['/ui/queue/1000', /^Replay/, 1],
  ];
  for (const [path, name, least] of views) {
    await page.goto(server.url + path);
    const buttons = page.getByRole('button', { name });
    await until(`${least} buttons of ${path}`, async () => (await buttons.count()) >= least);
    for (const button of await buttons.all()) {
      await until(`${path} to know`, async () => (await button.getAttribute('aria-disabled')) === 'true');
    }
  }
  assert.equal((await pair()).status, 'ACTIVE');
  await page.finish();
});

test('Operators pause and resume, and leave positions to admins', async () => {
  const page = await pageOf('otto', 'operator', '/ui/topics/wallet-events/orders-file');
  await page.getByLabel('Publish next what is behind position').fill('0');
  await assertRefused(page, page.getByRole('button', { name: 'Rewind…' }), 'admin');
  await page.getByLabel('Publish next what is behind position').press('Enter');
  assert.equal(await page.getByRole('dialog').count(), 0);
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click();
  await until('the pause', async () => (await pair()).status === 'PAUSED');
  await page.getByRole('button', { name: 'Resume' }).click();
  await until('the resumption', async () => (await pair()).status === 'ACTIVE');
  await page.finish();
});
