// SPDX-License-Identifier: Apache-2.0
// Every action, by mouse and by keyboard, and what becomes of it in the database.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openBrowser, openPage, Server, title, until } from './harness.mjs';

let browser, server;
before(async () => {
  browser = await openBrowser();
  server = await Server.start();
  await server.seed();
});
after(async () => {
  await browser?.close();
  await server?.remove();
});

const pair = () => server.get('/api/topics/wallet-events/publishers/orders-file');
const dialog = (page) => page.getByRole('dialog');

test('A pair is paused after a question, the overview says why it is stuck, and it is resumed', async () => {
  const page = await openPage(browser, server, { path: '/ui/topics' });
  await page.getByRole('button', { name: 'Pause wallet-events to orders-file' }).click();
  await dialog(page).getByRole('button', { name: 'Cancel' }).click();
  assert.equal((await pair()).status, 'ACTIVE', 'nobody confirmed');
  await page.getByRole('button', { name: 'Pause wallet-events to orders-file' }).click();
  await dialog(page).getByRole('button', { name: 'Pause' }).click();
  await page.getByText('Paused wallet-events → orders-file').waitFor();
  assert.equal((await pair()).status, 'PAUSED');
  await server.send('/append', { events: [{ type: 'Credited', tags: ['wallet=1'], data: '{}' }] });
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.locator('.why.bad').getByText(/wallet-events.*paused/i).waitFor();
  await page.getByRole('link', { name: 'Look at it' }).click();
  await page.getByRole('button', { name: 'Resume wallet-events to orders-file' }).click();
  await page.getByText('Resumed wallet-events → orders-file').waitFor();
  await until('the pair to catch up', async () => (await pair()).lagEvents === 0);
  await page.finish();
});

test('A pair is rewound after a question that says what it means', async () => {
  const page = await openPage(browser, server, { path: '/ui/topics/wallet-events/orders-file' });
  const field = page.getByLabel('Publish next what is behind position');
  await field.fill('-3');
  assert.ok(await page.getByRole('button', { name: 'Rewind…' }).isDisabled(), 'no position');
  await field.fill('10');
  await page.getByRole('button', { name: 'Rewind…' }).click();
  await dialog(page).getByText(/events are published again/).waitFor();
  await dialog(page).getByRole('button', { name: 'Rewind' }).click();
  await page.getByText('goes on behind position 10').waitFor();
  const { entries } = await server.get('/api/audit');
  assert.match(entries[0].what, /10 wallet-events\/orders-file/);
  await page.getByRole('button', { name: 'Reset errors' }).click();
  await dialog(page).getByRole('button', { name: 'Reset' }).click();
  await page.getByText('Errors forgotten: wallet-events').waitFor();
  await page.getByRole('img', { name: /Events behind the head: now Lag/ }).waitFor();
  await page.finish();
});

test('Dead letters of a pair are looked at, counted, and discarded', async () => {
  server.refuse([2, 3, 5, 4711]);
  const page = await openPage(browser, server, { path: '/ui/topics/wallet-events/orders-file' });
  await page.getByRole('link', { name: 'Look at them' }).click();
  await title(page, 'Dead letters of wallet-events → orders-file');
  await until('four rows', async () => (await page.locator('tbody tr').count()) === 4);
  await page.getByText('no longer in the store').waitFor();
  await page.getByRole('button', { name: 'Show dead letter at 3' }).click();
  await dialog(page).locator('.j-key', { hasText: '"amount"' }).waitFor();
  await dialog(page).getByText('refused: ').waitFor();
  await dialog(page).getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Discard up to 3' }).click();
  await dialog(page).getByText('2 dead letters', { exact: true }).waitFor();
  await dialog(page).getByRole('button', { name: 'Cancel' }).click();
  assert.equal((await pair()).deadLetters, 4, 'counting removes nothing');
  await page.getByRole('button', { name: 'Discard up to 3' }).click();
  await dialog(page).getByRole('button', { name: 'Discard' }).click();
  await page.getByText('Discarded: 2 dead letters').waitFor();
  await until('two rows', async () => (await page.locator('tbody tr').count()) === 2);
  server.refuse([6000]); // dies while somebody reads the list: not what he discards
  await page.getByRole('button', { name: 'Discard all…' }).click();
  await dialog(page).getByText('2 dead letters', { exact: true }).waitFor();
  await dialog(page).getByRole('button', { name: 'Discard' }).click();
  await page.getByText('Discarded: 2 dead letters').waitFor();
  await until('the new one', async () => (await page.locator('tbody tr').count()) === 1);
  const { entries } = await server.get('/api/audit');
  assert.match(entries[0].what, /discard 2 dead letters of wallet-events\/orders-file up to 4711/);
  await page.getByRole('button', { name: 'Discard up to 6000' }).click();
  await dialog(page).getByRole('button', { name: 'Discard' }).click();
  await page.getByText('No dead letter', { exact: true }).waitFor();
  await page.finish();
});

test('An event is found, read and copied', async () => {
  const page = await openPage(browser, server, { path: '/ui/events' });
  await page.getByLabel('Aggregate id').fill('order-7');
  await page.keyboard.press('Enter');
  await page.waitForURL(/aggregateId=order-7/);
  await until('one row', async () => (await page.locator('tbody tr').count()) === 1);
  await page.getByRole('link', { name: 'OrderPlaced' }).click();
  await title(page, 'OrderPlaced');
  await page.locator('.timeline').getByText('Delivered').waitFor();
  await page.locator('.j-key', { hasText: '"coupon"' }).waitFor();
  await page.getByText('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01').waitFor();
  await page.getByRole('button', { name: 'Copy as curl that publishes it again' }).click();
  await page.getByText('Copied').waitFor();
  const curl = await page.evaluate(() => navigator.clipboard.readText());
  // What was copied works in a shell, quotes and all.
  const { execFileSync } = await import('node:child_process');
  const answer = JSON.parse(execFileSync('bash', ['-c', curl.replace(/^curl /, 'curl -sS ')]).toString());
  assert.equal(answer.status, 'created');
  const again = await server.get(`/api/outbox/events/${answer.id}`);
  assert.equal(JSON.parse(again.payload).note, 'Größe "L"');
  await page.goBack();
  await page.waitForURL(/aggregateId=order-7/);
  await page.finish();
});

test('Dead letters are selected by their error, counted, and replayed with progress', async () => {
  await server.publish(Array.from({ length: 1200 }, (_, i) => ({ type: 'OrderVoid', payload: { id: i } })));
  await until('1213 dead', async () => (await server.get('/api/outbox/counts')).dead === 1213, 60);
  const page = await openPage(browser, server, { path: '/ui/dead' });
  await page.getByRole('button', { name: /^Select OrderVoid/ }).click();
  await page.waitForURL(/type=OrderVoid/);
  await page.getByRole('button', { name: 'Replay selected…' }).click();
  await dialog(page).getByText('1,200 events would be tried again.').waitFor();
  assert.equal((await server.get('/api/outbox/counts')).dead, 1213, 'counting changes nothing');
  await dialog(page).getByLabel('Events per second').fill('1');
  await dialog(page).getByRole('button', { name: 'Replay 1,200' }).click();
  await dialog(page).getByText(/^1,200 of 1,200 · finished, the last falls due in/).waitFor();
  await dialog(page).getByRole('button', { name: 'Close' }).click();
  const { pending } = await server.get('/api/outbox/counts');
  assert.ok(pending > 1100, `${pending} wait for their second`);
  const last = await server.get('/api/outbox/events?status=PENDING&type=OrderVoid&limit=1000');
  const rest = await server.get(`/api/outbox/events?status=PENDING&type=OrderVoid&limit=1000&cursor=${encodeURIComponent(last.nextCursor)}`);
  const ends = Math.max(...rest.events.map((one) => Date.parse(one.availableAt)));
  assert.ok(ends > Date.now() + 1150e3 && ends < Date.now() + 1260e3, 'slices follow one another at the pace');
  const { entries } = await server.get('/api/audit');
  const replays = entries.map((one) => one.what).filter((what) => what.startsWith('replay'));
  assert.match(replays[0], /^replay 1200 dead letters, .*OrderVoid/);
  assert.ok(replays.length === 1 || !replays[1].includes('OrderVoid'), 'one line of all slices');
  await page.finish();
});

test('One dead letter is replayed from its own page', async () => {
  const page = await openPage(browser, server, { path: '/ui/events/strange-1' });
  await page.getByRole('button', { name: 'Replay' }).click();
  await dialog(page).getByRole('button', { name: 'Replay' }).click();
  await page.getByText('1 event replayed').waitFor();
  await page.finish();
});

test('A stuck event of the outbox is requeued, another is cancelled on its own page', async () => {
  const past = `(CAST(strftime('%s', 'now') AS INTEGER) - 3600) * 1000000`;
  const later = `(CAST(strftime('%s', 'now') AS INTEGER) + 3600) * 1000000`;
  server.sql(
    ['hung-1', 'hung-2']
      .map((id) => `INSERT INTO postrider_outbox_event (event_id, event_type, payload, available_at, owner, lease_until)
        VALUES ('${id}', 'OrderPlaced', '{"id":7}', ${past}, 'node-9', ${later});`)
      .join('\n'),
  );
  const page = await openPage(browser, server, { path: '/ui/events' });
  await page.getByRole('link', { name: 'Stuck', exact: true }).click();
  await page.waitForURL(/list=stuck/);
  await until('both', async () => (await page.locator('tbody tr').count()) === 2);
  await page.getByRole('button', { name: 'Requeue hung-1' }).click();
  await dialog(page).getByText('1 event', { exact: true }).waitFor();
  await dialog(page).getByRole('button', { name: 'Requeue' }).click();
  await page.getByText('Requeue: 1 event').waitFor();
  await until('its delivery', async () => (await server.get('/api/outbox/events/hung-1')).status === 'DONE');
  await page.getByRole('link', { name: 'OrderPlaced' }).click();
  await page.waitForURL(/hung-2/);
  await page.getByText(/taken by node-9, until/).waitFor();
  await page.getByRole('button', { name: 'Requeue…' }).waitFor();
  await page.getByRole('button', { name: 'Cancel event…' }).click();
  await dialog(page).getByRole('button', { name: 'Cancel event' }).click();
  await page.getByText('Cancel event: 1 event').waitFor();
  await page.getByText('Cancelled: a dead letter').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Requeue…' }).count(), 0, 'it is finished');
  const { entries } = await server.get('/api/audit');
  assert.match(entries[0].what, /^cancel 1 events of the outbox/);
  assert.match(entries[1].what, /^requeue 1 events of the outbox/);
  await server.send('/api/outbox/dead/replay', { filter: { ids: ['hung-2'] } });
  await until('its delivery', async () => (await server.get('/api/outbox/events/hung-2')).status === 'DONE');
  await page.goto(`${server.url}/ui/events?list=stuck`);
  await page.getByText('No event could have been delivered for more than 5 minutes and was not.').waitFor();
  await page.finish();
});

test('A stuck event is requeued, one is released, one cancelled, one replayed', async () => {
  const page = await openPage(browser, server, { path: '/ui/queue?list=stuck' });
  const act = async (button, said) => {
    await page.getByRole('button', { name: button }).click();
    await dialog(page).getByText('1 event', { exact: true }).waitFor();
    await dialog(page).getByRole('button', { name: said }).click();
    await page.getByText(`${said}: 1 event`).waitFor();
  };
  await act('Requeue 2', 'Requeue');
  await page.getByText('No event has been in progress for more than 5 minutes.').waitFor();
  await page.getByRole('link', { name: 'Quarantine', exact: true }).click();
  await act('Release 3', 'Release');
  await page.getByRole('link', { name: 'In the queue' }).click();
  await act('Cancel event 1', 'Cancel event');
  await page.getByRole('link', { name: 'Failed' }).click();
  await act('Replay 1000', 'Replay');
  const { entries } = await server.get('/api/queue/log?status=FAILED');
  assert.deepEqual(entries.map((one) => one.type).sort(), ['MailFailed', 'MailWanted']);
  await page.finish();
});

test('The store answers by type, tags and position', async () => {
  const page = await openPage(browser, server, { path: '/ui/store' });
  await page.getByLabel('Any of these types').fill('Debited');
  await page.getByLabel('All of these tags').fill('wallet=0');
  await page.getByRole('button', { name: 'Read' }).click();
  await page.waitForURL(/types=Debited/);
  await until('four rows', async () => (await page.locator('tbody tr').count()) === 4);
  await page.getByRole('button', { name: 'Clear' }).click();
  const scrubber = page.getByRole('slider');
  await scrubber.focus();
  await page.keyboard.press('Home');
  await page.waitForURL(/after=0/);
  await until('the oldest first', async () => (await page.locator('tbody td').first().textContent()) === '1');
  for (let i = 0; i < 3; ++i) await page.keyboard.press('ArrowRight');
  await page.waitForURL(/after=3/);
  await until('position 4', async () => (await page.locator('tbody td').first().textContent()) === '4');
  await page.getByRole('button', { name: 'Show event at 5', exact: true }).click();
  await page.locator('.j-key', { hasText: '"amount"' }).waitFor();
  await page.finish();
});

test('What was done is in the audit', async () => {
  const page = await openPage(browser, server, { path: '/ui/audit' });
  await page.getByRole('cell', { name: /pause/ }).first().waitFor();
  await page.getByLabel('Who').fill('nobody');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText('No change matches').waitFor();
  await page.finish();
});

test('All of it without a mouse', async () => {
  const page = await openPage(browser, server, { path: '/ui' });
  await title(page, 'Overview');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'content');
  await page.keyboard.press('?');
  await dialog(page).getByText('Dead letters').waitFor();
  await page.keyboard.press('Escape');
  await dialog(page).waitFor({ state: 'detached' });
  for (const [key, heading] of [['e', 'Events'], ['d', 'Dead letters'], ['q', 'Queue'], ['s', 'Store'], ['p', 'Projections'], ['l', 'Logger & spill'], ['n', 'Nodes & leaders'], ['a', 'Audit'], ['o', 'Overview'], ['t', 'Topics']]) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await title(page, heading);
    await until('the title to have the focus', () => page.evaluate(() => document.activeElement.id === 'page-title'));
  }
  await page.getByRole('link', { name: 'wallet-events' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('wallet');
  await page.waitForURL(/q=wallet/);
  // From the field by Tab alone: status, table, link, button.
  for (let i = 0; i < 4; ++i) await page.keyboard.press('Tab');
  const focused = () => page.evaluate(() => document.activeElement.getAttribute('aria-label'));
  assert.equal(await focused(), 'Pause wallet-events to orders-file');
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, 'solid', 'the focus is seen');
  await page.keyboard.press('Enter');
  await dialog(page).waitFor();
  await page.keyboard.press('Escape');
  await dialog(page).waitFor({ state: 'detached' });
  assert.equal(await focused(), 'Pause wallet-events to orders-file', 'back where one was');
  await page.finish();
});

test('The switch of colours wins over the system, and is kept', async () => {
  const page = await openPage(browser, server, { colorScheme: 'light' });
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await ground();
  await page.getByLabel('Colours').selectOption('dark');
  const dark = await ground();
  assert.notEqual(dark, light);
  await page.reload();
  await title(page, 'Overview');
  assert.equal(await ground(), dark);
  await page.getByLabel('Colours').selectOption('auto');
  assert.equal(await ground(), light);
  await page.finish();
});
