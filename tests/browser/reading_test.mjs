// SPDX-License-Identifier: Apache-2.0
// What one reads: nothing is cut for good, figures say what they count, lists stand in their order.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { lowContrasts, openBrowser, openPage, Server, title, until } from './harness.mjs';

const longReason = `the customer called and wants it in blue: ${'very '.repeat(60)}much`;
const longError = `cannot read the payload as OrderPlaced, which has ${'nested '.repeat(12)}lines`;
const now = `CAST(strftime('%s', 'now') AS INTEGER) * 1000000`;
const logged = (id, eventId) => `
  INSERT INTO postrider_event_log (id, token, event_id, event_type, payload, status, priority, attempts, crashes, created_at,
      occurred_at, processing_started_at, finalized_at, results)
    VALUES (${id}, 1, '${eventId}', 'OrderPlaced', '{}', 3, 0, 1, 0, ${now}, ${now}, ${now}, ${now},
      '[{"handler":"invoice","result":2,"failed":0,"error":"${longError}"},
        {"handler":"mail","result":2,"failed":0,"error":"${longError}"}]');`;

let browser, server;
before(async () => {
  browser = await openBrowser();
  server = await Server.start();
  await server.seed();
  server.sql(`
    INSERT INTO postrider_audit (made_at, who, what) VALUES (${now}, 'anna', 'outbox cancel --reason "${longReason}"');
    INSERT INTO postrider_outbox_dead_letter (topic, publisher, position, error, failed_at)
      VALUES ('wallet-events', 'orders-file', 1, 'event 01M7RYN5DFQS523W16CZPK5ABC at position 1: HTTP 422 ${longError}', ${now});
    ${logged(1001, 'first-1')} ${logged(1002, 'second-1')} ${logged(1003, 'first-1')}`);
});
after(async () => {
  await browser?.close();
  await server?.remove();
});

const dialog = (page) => page.getByRole('dialog');
const figure = (page, label) => page.locator('.figure').filter({ has: page.getByText(label, { exact: true }) });

test('What does not fit into its cell is told to whoever points at it, and in whole by a button', async () => {
  const page = await openPage(browser, server, { path: '/ui/audit', viewport: { width: 1400, height: 900 } });
  const cell = page.getByRole('cell', { name: /^outbox cancel --reason/ });
  const box = await cell.boundingBox();
  assert.ok(box.width > 600, `the wide column takes what is left: ${box.width}`);
  await cell.hover();
  await until('the whole text', async () => ((await cell.getAttribute('title')) ?? '').includes(longReason));
  const who = page.getByRole('cell', { name: 'anna' });
  await who.hover();
  assert.equal(await who.getAttribute('title'), null, 'this one is not cut');
  await page.getByRole('button', { name: /^Show outbox cancel/ }).press('Enter');
  await dialog(page).getByText(longReason).waitFor();
  assert.deepEqual(await lowContrasts(page), []);
  await page.keyboard.press('Escape');
  await dialog(page).waitFor({ state: 'detached' });
  await page.finish();
});

test('What handlers said about an event of the queue is readable on its page', async () => {
  const page = await openPage(browser, server, { path: '/ui/queue/1001' });
  const errors = page.getByRole('cell', { name: longError });
  await errors.first().waitFor();
  for (const error of await errors.all()) assert.ok(await error.evaluate((one) => one.scrollWidth <= one.clientWidth));
  await page.finish();
});

test('Dead letters of the relay are found from the overview, the topics and the other dead letters', async () => {
  const page = await openPage(browser, server);
  await page.getByRole('link', { name: '1 in the relay' }).click();
  await title(page, 'Dead letters');
  await page.getByRole('region', { name: 'Pairs with dead letters' }).getByRole('link', { name: 'wallet-events' }).click();
  await title(page, 'Dead letters of wallet-events → orders-file');
  await page.getByRole('cell', { name: /^HTTP 422/ }).waitFor(); // its id and position stand elsewhere
  await page.getByRole('button', { name: 'Show dead letter at 1' }).click();
  await dialog(page).getByText(`HTTP 422 ${longError}`).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('link', { name: 'Topics' }).click();
  await title(page, 'Topics');
  await page.getByRole('columnheader', { name: 'Dead letters' }).waitFor();
  await page.getByRole('region', { name: 'Pairs' }).getByRole('link', { name: '1', exact: true }).click();
  await title(page, 'Dead letters of wallet-events → orders-file');
  await page.finish();
});

test('Figures say what they count', async () => {
  const page = await openPage(browser, server, { viewport: { width: 1400, height: 900 } });
  assert.match(await figure(page, 'Oldest in the outbox').innerText(), /none waits/);
  assert.match(await figure(page, 'Queue').innerText(), /^Queue\s+1\s+waiting, the oldest for .*; 1 in quarantine$/);
  assert.match(await figure(page, 'Dead letters').innerText(), /14\s+13 in the outbox, 1 in the relay/);
  await page.getByRole('img', { name: /^Events that wait: now Outbox 0, Queue 1, Dead 14$/ }).waitFor();
  await page.getByRole('img', { name: /^How long the oldest has waited: now Outbox 0 s, Queue \d.*, Relay 0 s$/ }).waitFor();
  await page.goto(`${server.url}/ui/nodes`);
  assert.match(await figure(page, 'Database').innerText(), /\d+ of \d+ connections open, \d+ in use/);
  await page.goto(`${server.url}/ui/events?aggregateId=order-7`);
  await page.getByRole('columnheader', { name: 'Failed attempts' }).waitFor();
  await page.getByRole('link', { name: 'OrderPlaced' }).click();
  await page.getByText('with attempt 1').waitFor();
  assert.equal(await page.locator('.facts div').filter({ hasText: 'Failed attempts' }).locator('dd').innerText(), '0');
  await page.finish();
});

test('Finished events of the queue stand newest first, and a list that is whole says so', async () => {
  const page = await openPage(browser, server, { path: '/ui/queue?list=log' });
  const ids = page.locator('tbody td:first-child');
  await until('the rows', async () => (await ids.count()) === 4);
  assert.deepEqual(await ids.allInnerTexts(), ['1003', '1002', '1001', '1000']);
  await page.getByText('4 in all').waitFor();
  assert.equal(await page.getByRole('button', { name: 'More' }).count(), 0);
  await page.finish();
});

test('An event of the queue is found by its own id, waiting or finished', async () => {
  const page = await openPage(browser, server, { path: '/ui/queue' });
  await page.getByRole('cell', { name: 'q-1' }).waitFor();
  const field = page.getByLabel('Event id');
  await field.fill('first-1');
  await field.press('Enter');
  await page.waitForURL(/eventId=first-1/);
  await until('both', async () => (await page.locator('tbody tr').count()) === 2);
  await field.fill('q-1');
  await page.getByRole('button', { name: 'Find' }).click();
  await page.getByRole('link', { name: '1', exact: true }).waitFor();
  await until('the one that waits', async () => (await page.locator('tbody tr').count()) === 1);
  await field.fill('nobody');
  await field.press('Enter');
  await page.getByText('Neither the queue nor its log has an event with this id.').waitFor();
  await field.fill('');
  await field.press('Enter');
  await page.getByRole('cell', { name: 'q-1' }).waitFor();
  await page.finish();
});

test('The list of events says by what it is ordered', async () => {
  const page = await openPage(browser, server, { path: '/ui/events' });
  await page.getByText(/^By id, the highest first/).waitFor();
  await page.getByLabel('Status').selectOption('DEAD');
  await page.getByText('The last given up first.').waitFor();
  await page.finish();
});

test('The replay dialog speaks of fields by their names, and not of what would be when it is done', async () => {
  const page = await openPage(browser, server, { path: '/ui/dead?type=OrderLost&errorContains=route' });
  await page.getByRole('button', { name: 'Replay selected…' }).click();
  await dialog(page).getByText('12 events would be tried again.').waitFor();
  assert.match(await dialog(page).innerText(), /Those with type OrderLost, error has route/);
  await dialog(page).getByRole('button', { name: 'Replay 12' }).click();
  await dialog(page).getByText('finished').waitFor();
  assert.equal(await dialog(page).getByText('would be tried again').count(), 0);
  await dialog(page).getByRole('button', { name: 'Close' }).click();
  await page.finish();
});

test('Control characters are seen, as on the command line', async () => {
  await server.publish([{ type: 'Evil\u001b[31m\u202e', payload: {} }]);
  const page = await openPage(browser, server, { path: '/ui/events?type=Evil%1B%5B31m%E2%80%AE' });
  await page.getByRole('link', { name: 'Evil\\x1b[31m\\u202e' }).click();
  await title(page, 'Evil\\x1b[31m\\u202e');
  assert.equal(await page.title(), 'Evil\\x1b[31m\\u202e · Postrider');
  await page.finish();
});
