// SPDX-License-Identifier: Apache-2.0
// One event's way: its attempts, what came of them, and what comes next.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { hostile, lowContrasts, openBrowser, openPage, Server } from './harness.mjs';

const micros = (secondsAgo) => `(CAST(strftime('%s', 'now') AS INTEGER) - ${secondsAgo}) * 1000000`;

let browser, server;
const worker = `'worker-<b>1</b>'`;
before(async () => {
  browser = await openBrowser();
  server = await Server.start();
  // What many hours of failing receivers leave behind.
  const row = (id, status, attempts, error, doneAt) => `
    INSERT INTO postrider_outbox_event (event_id, event_type, payload, status, attempts, available_at, done_at, last_error, token)
      VALUES ('${id}', 'OrderPlaced', '{}', ${status}, ${attempts}, ${micros(-3600)}, ${doneAt}, ${error ? `'${error}'` : 'NULL'}, 60);`;
  const attempt = (id, token, number, ago, owner, outcome, error) => `
    INSERT INTO postrider_outbox_attempt (event_id, token, attempt, at, owner, outcome, error)
      VALUES ('${id}', ${token}, ${number}, ${micros(ago)}, ${owner}, ${outcome}, '${error}');`;
  server.sql(
    row('waits', 2, 2, 'timed out', 'NULL') +
      attempt('waits', 1, 1, 300, `'node-1'`, 0, hostile) +
      attempt('waits', 2, 2, 200, `'node-2'`, 0, 'timed out') +
      row('replayed', 1, 0, 'gone', micros(10)) +
      attempt('replayed', 1, 1, 90, `'node-1'`, 1, 'gone') +
      row('dead', 3, 1, 'refused', micros(10)) +
      attempt('dead', 1, 1, 10, 'NULL', 1, 'refused') +
      `INSERT INTO postrider_event_queue (id, event_id, event_type, payload, attempts, crashes, token, available_at, last_error)
         VALUES (2000, 'q', 'MailWanted', '{}', 2, 1, 2, ${micros(-3600)}, 'mailer: busy');
       INSERT INTO postrider_event_attempt (id, token, attempt, started_at, at, owner, outcome, error)
         VALUES (2000, 1, 1, ${micros(90)}, ${micros(60)}, ${worker}, 4, NULL);
       INSERT INTO postrider_event_attempt (id, token, attempt, started_at, at, owner, outcome, error)
         VALUES (2000, 2, 2, ${micros(50)}, ${micros(49)}, 'worker-2', 0, '${hostile}');` +
      row('fresh', 0, 0, '', 'NULL') +
      row('old', 3, 7, 'before histories were kept', micros(10)) +
      row('often', 2, 60, 'no', 'NULL') +
      Array.from({ length: 50 }, (_, i) => attempt('often', i + 11, i + 11, 60 - i, `'node-1'`, 0, `no ${i}`)).join(''),
  );
});
after(async () => {
  await browser?.close();
  await server?.remove();
});

/// The steps, each as its title and what stands below it.
async function way(page) {
  await page.getByRole('list', { name: 'Its way' }).waitFor();
  return page.locator('.timeline li').evaluateAll((steps) =>
    steps.map((step) => [step.querySelector('.strong').textContent, step.querySelector('.muted')?.textContent ?? '']),
  );
}

for (const colorScheme of ['light', 'dark']) {
  test(`An event that waits shows each attempt with time, node and error, as text, ${colorScheme}`, async () => {
    const page = await openPage(browser, server, { path: '/ui/events/waits', colorScheme });
    assert.deepEqual((await way(page)).slice(1), [
      ['Written to the outbox', ''],
      ['Attempt 1 failed', `on node-1: ${hostile}`],
      ['Attempt 2 failed', 'on node-2: timed out'],
      ['Next attempt', ''],
    ]);
    assert.equal(await page.locator('.timeline li:nth-child(3) time').count(), 1);
    assert.equal(await page.locator('.timeline img').count(), 0);
    assert.deepEqual(await lowContrasts(page), []);
    await page.finish();
  });
}

test('A dead letter that was replayed shows both lives', async () => {
  const page = await openPage(browser, server, { path: '/ui/events/replayed' });
  assert.deepEqual((await way(page)).slice(2), [
    ['Attempt 1 failed', 'on node-1: gone'],
    ['Given up: a dead letter', ''],
    ['Replayed', ''],
    ['Delivered', 'with attempt 1'],
  ]);
  await page.finish();
});

test('A dead letter ends with what can be done about it', async () => {
  const page = await openPage(browser, server, { path: '/ui/events/dead' });
  assert.deepEqual((await way(page)).slice(2), [
    ['Attempt 1 failed', 'refused'],
    ['Given up: a dead letter', 'It stays until somebody replays or purges it.'],
  ]);
  await page.finish();
});

test('An event without a failure says so', async () => {
  const page = await openPage(browser, server, { path: '/ui/events/fresh' });
  await page.getByText('No attempt has failed.').waitFor();
  await page.finish();
});

test('Attempts that nobody has written down are counted', async () => {
  const page = await openPage(browser, server, { path: '/ui/events/old' });
  assert.deepEqual((await way(page))[2], ['7 attempts failed', 'before histories were kept']);
  await page.finish();
});

test('Of an event that failed often the newest attempts are shown, and that there were others; a phone has room for them', async () => {
  const page = await openPage(browser, server, { path: '/ui/events/often', viewport: { width: 390, height: 844 } });
  const steps = await way(page);
  assert.deepEqual(steps[2], ['Earlier attempts are not kept', '']);
  assert.deepEqual(steps[3], ['Attempt 11 failed', 'on node-1: no 0']);
  assert.deepEqual(steps[52], ['Attempt 60 failed', 'on node-1: no 49']);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is cut off');
  await page.finish();
});

test('An event of the queue shows which worker died and which attempt failed', async () => {
  const page = await openPage(browser, server, { path: '/ui/queue/2000' });
  assert.deepEqual(await way(page), [
    ['Enqueued', ''],
    ['Attempt 1: its worker died', 'on worker-<b>1</b>'],
    ['Attempt 2 failed', `on worker-2: ${hostile}`],
    ['Due', 'mailer: busy'],
  ]);
  assert.equal(await page.locator('.timeline img, .timeline b').count(), 0);
  assert.deepEqual(await lowContrasts(page), []);
  await page.finish();
});
