// SPDX-License-Identifier: Apache-2.0
// Every screen with data, with none, and with a server that does not have it; both colour schemes; a phone.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { hostile, lowContrasts, openBrowser, openPage, Server, title, until } from './harness.mjs';

let browser, server, empty;
before(async () => {
  browser = await openBrowser();
  server = await Server.start();
  empty = await Server.start({ routes: false });
  await server.seed();
  server.refuse([1, 61]);
});
after(async () => {
  await browser?.close();
  await server?.remove();
  await empty?.remove();
});

const screens = [
  ['/ui', 'Overview', 'Dead letters'],
  ['/ui/topics', 'Topics', 'wallet-events'],
  ['/ui/topics/wallet-events/orders-file', 'wallet-events → orders-file', 'Who publishes'],
  ['/ui/topics/wallet-events/orders-file/dead', 'Dead letters of wallet-events → orders-file', 'refused:'],
  ['/ui/events', 'Events', 'OrderPlaced'],
  ['/ui/dead', 'Dead letters', 'OrderLost'],
  ['/ui/queue', 'Queue', 'MailWanted'],
  ['/ui/queue?list=stuck', 'Queue', 'MailStuck'],
  ['/ui/queue?list=quarantine', 'Queue', 'MailKiller'],
  ['/ui/queue?list=failed', 'Queue', 'mailer: no such mailbox'],
  ['/ui/queue/1000', 'MailFailed', 'no such mailbox'],
  ['/ui/store', 'Store', 'wallet=4'],
  ['/ui/projections', 'Projections', 'No projection yet'],
  ['/ui/log', 'Logger & spill', 'checkout'],
  ['/ui/nodes', 'Nodes & leaders', 'alive'],
  ['/ui/audit', 'Audit', 'No change yet'],
  ['/ui/nowhere', 'Nothing here', 'no view'],
];
for (const colorScheme of ['light', 'dark']) {
  for (const [path, heading, text] of screens) {
    test(`${path} has its data, ${colorScheme}`, async () => {
      const page = await openPage(browser, server, { path, colorScheme });
      await title(page, heading);
      await page.locator('main').getByText(text).first().waitFor();
      assert.deepEqual(await lowContrasts(page), []);
      assert.match(await page.title(), / · Postrider$/);
      await page.finish();
    });
  }
}

const nothing = [
  ['/ui', 'All is moving'],
  ['/ui/topics', 'No topic yet'],
  ['/ui/events', 'No event yet'],
  ['/ui/dead', 'No dead letter'],
  ['/ui/queue', 'The queue is empty'],
  ['/ui/store', 'The store is empty'],
  ['/ui/projections', 'No projection yet'],
  ['/ui/log', 'No entry yet'],
  ['/ui/nodes', 'Nobody leads'],
  ['/ui/audit', 'No change yet'],
];
for (const [path, text] of nothing) {
  test(`${path} says what to do when there is nothing`, async () => {
    const page = await openPage(browser, empty, { path });
    await page.locator('main').getByText(text).first().waitFor();
    await page.finish();
  });
}

test('What a search does not find is no empty database', async () => {
  const page = await openPage(browser, server, { path: '/ui/events?type=Nope' });
  await page.getByText('No event matches').waitFor();
  await page.getByRole('button', { name: 'Clear' }).click();
  await page.getByRole('link', { name: 'OrderPlaced' }).first().waitFor();
  await page.finish();
});

test('A part that the server does not have is named so', async () => {
  const allow = [/404/];
  const page = await openPage(browser, server, { path: '/ui/topics', allow });
  await page.route('**/api/projections', (route) =>
    route.fulfill({ status: 404, contentType: 'application/problem+json', body: '{"title":"Not Found","status":404,"code":"not-found"}' }),
  );
  await page.getByRole('link', { name: 'Projections' }).click();
  await page.getByText('Not available on this server').waitFor();
  await page.finish();
});

test('An event that is not there is no missing part', async () => {
  const page = await openPage(browser, server, { path: '/ui/events/none-such', allow: [/404/] });
  await page.getByRole('alert').getByText('The event cannot be read').waitFor();
  await page.finish();
});

test('A pair without dead letters says so, and one that is not there is named', async () => {
  const page = await openPage(browser, server, { path: '/ui/topics/audit-events/orders-file/dead' });
  await page.getByText('No dead letter', { exact: true }).waitFor();
  await page.finish();
  const none = await openPage(browser, server, { path: '/ui/topics/none/such/dead', allow: [/404/] });
  await none.getByRole('alert').getByText('The dead letters cannot be read').waitFor();
  await none.finish();
});

test('A refusal says what, why and what to do', async () => {
  const page = await openPage(browser, server, { path: '/ui/topics', allow: [/503/] });
  await page.getByRole('link', { name: 'wallet-events' }).waitFor();
  await page.route('**/api/audit*', (route) =>
    route.fulfill({
      status: 503,
      contentType: 'application/problem+json',
      body: '{"title":"Service Unavailable","status":503,"code":"busy","detail":"the pool is empty","hint":"try later"}',
    }),
  );
  await page.getByRole('link', { name: 'Audit', exact: true }).click();
  const alert = page.getByRole('alert');
  await alert.getByText('The audit cannot be read: Service Unavailable').waitFor();
  await alert.getByText('the pool is empty').waitFor();
  await alert.getByText('Hint: try later').waitFor();
  await page.unroute('**/api/audit*');
  await alert.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('No change yet').waitFor();
  await page.finish();
});

test('Names of strangers stay text', async () => {
  for (const path of ['/ui/topics/wallet-events/orders-file/dead', '/ui/events', '/ui/events/strange-1', '/ui/dead', '/ui/store', '/ui/log']) {
    const page = await openPage(browser, server, { path });
    await page.locator('main').getByText(hostile).first().waitFor();
    assert.equal(await page.locator('main img').count(), 0, path);
    await page.finish();
  }
});

test('Spill folders tell what waits, and which cannot be read', async () => {
  const page = await openPage(browser, server, { path: '/ui/log' });
  const row = page.getByRole('row').filter({ hasText: /\/spill/ });
  await row.waitFor();
  assert.deepEqual((await row.getByRole('cell').allTextContents()).slice(1, 3), ['2', '–']);
  await page.getByText('there is no such folder').waitFor();
  await page.getByRole('button', { name: /^Show files of .*\/spill$/ }).click();
  await page.getByRole('cell', { name: 'eventlog-spillover.dead.jsonl' }).waitFor();
  await page.getByRole('cell', { name: 'dead letters' }).waitFor();
  await page.finish();
  const none = await openPage(browser, empty, { path: '/ui/log' });
  await none.getByText('spill.folders').waitFor();
  await none.finish();
});

test('The charts fill, and survive a reload', async () => {
  const page = await openPage(browser, server);
  await page.locator('.chart canvas').nth(3).waitFor();
  await until('two samples', async () => page.evaluate(() => document.querySelectorAll('.uplot').length === 4));
  const label = page.getByRole('img', { name: /^Events that wait: now Outbox 0, Queue 1, Dead 15$/ });
  await label.waitFor();
  await page.reload();
  await page.locator('.chart canvas').first().waitFor();
  const kept = await page.evaluate(() => JSON.parse(sessionStorage.getItem('postrider.samples')).length);
  assert.ok(kept >= 2, `${kept} samples`);
  await page.finish();
});

test('On a phone nothing sticks out', async () => {
  for (const [path, heading] of screens.slice(0, -1)) {
    const page = await openPage(browser, server, { path, viewport: { width: 375, height: 760 } });
    await title(page, heading);
    await page.locator('main .table-box, main .card, main .empty').first().waitFor();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 375, `${path} is ${width} wide`);
    await page.finish();
  }
});
