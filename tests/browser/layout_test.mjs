// SPDX-License-Identifier: Apache-2.0
// Where things stand: on a wide screen, on a phone, and what opens in sight.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openBrowser, openPage, Server, title, until } from './harness.mjs';

const phone = { width: 390, height: 844 };

let browser, server, empty;
before(async () => {
  browser = await openBrowser();
  server = await Server.start();
  empty = await Server.start({ routes: false, log: false });
  await server.seed();
});
after(async () => {
  await browser?.close();
  await server?.remove();
  await empty?.remove();
});

const dialog = (page) => page.getByRole('dialog');
const inView = (page, box) => {
  const { width, height } = page.viewportSize();
  return box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height;
};

test('The figures of the overview fill their lines', async () => {
  for (const [width, inALine] of [[1400, 5], [1100, 5], [800, 2], [390, 2]]) {
    const page = await openPage(browser, server, { viewport: { width, height: 900 } });
    await page.locator('.figure').nth(9).waitFor();
    const tops = await page.locator('.figure').evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().top)));
    const lines = [...new Set(tops)].map((top) => tops.filter((one) => one === top).length);
    assert.deepEqual([...new Set(lines)], [inALine], `${width} wide: ${lines}`);
    assert.deepEqual(await page.locator('.figure .value').evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).length), 0);
    await page.finish();
  }
});

test('The example of an empty view stands below its sentence', async () => {
  const page = await openPage(browser, empty, { path: '/ui/topics', viewport: { width: 1400, height: 900 } });
  const code = await page.locator('.empty pre').boundingBox();
  const sentence = await page.locator('.empty .muted').evaluate((one) => {
    const range = document.createRange();
    range.selectNode(one.firstChild);
    return range.getBoundingClientRect().bottom;
  });
  assert.ok(code.y >= sentence, `${code.y} below ${sentence}`);
  await page.finish();
});

test('On a phone every view is in sight, so are the buttons of tables, and a search is folded', async () => {
  const page = await openPage(browser, server, { path: '/ui/dead', viewport: phone });
  await page.getByRole('button', { name: /^Select OrderLost/ }).waitFor();
  for (const link of await page.getByRole('navigation', { name: 'Views' }).getByRole('link').all()) {
    assert.ok(inView(page, await link.boundingBox()), await link.innerText());
  }
  assert.ok(inView(page, await page.getByRole('button', { name: /^Select OrderLost/ }).boundingBox()), 'Select');
  const head = await page.getByRole('heading', { name: 'All', exact: true }).boundingBox();
  const first = await page.getByRole('region', { name: 'Dead letters' }).locator('tbody tr').first().boundingBox();
  assert.ok(first.y - head.y < 160, `the search pushes the dead letters ${first.y - head.y} down`);
  await page.getByText('Select by…').click();
  await page.getByLabel('Error has').fill('route');
  await page.keyboard.press('Enter');
  await page.waitForURL(/errorContains=route/);
  assert.ok(await page.getByLabel('Error has').isVisible(), 'a search that holds stays open');
  await page.goto(`${server.url}/ui/topics`);
  assert.ok(inView(page, await page.getByRole('button', { name: 'Pause wallet-events to orders-file' }).boundingBox()), 'Pause');
  await page.finish();
});

test('What is shown of a row is in sight, and gone with the next search', async () => {
  const page = await openPage(browser, server, { path: '/ui/store' });
  await page.getByRole('button', { name: 'Show event at 50', exact: true }).click();
  assert.ok(inView(page, await dialog(page).boundingBox()));
  await dialog(page).locator('.j-key', { hasText: '"amount"' }).waitFor();
  await page.keyboard.press('Escape');
  await dialog(page).waitFor({ state: 'detached' });
  const focused = await page.evaluate(() => document.activeElement.getAttribute('aria-label'));
  assert.equal(focused, 'Show event at 50', 'back where one was');
  await page.getByLabel('Any of these types').fill('None');
  await page.getByRole('button', { name: 'Read' }).click();
  await page.getByText('No event matches').waitFor();
  assert.equal(await page.locator('.j-key').count(), 0);
  await page.finish();
});

test('The legend of a new chart has figures from the first moment on', async () => {
  const page = await openPage(browser, server, { path: '/ui/topics/wallet-events/orders-file' });
  await page.locator('.u-legend').waitFor();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  assert.match(await page.locator('.u-legend').innerText(), /^Time:?\s*\d\d:\d\d:\d\d\s*Lag:?\s*0$/);
  await page.finish();
});

test('A log that is off names its switch, and nothing is said of entries that are not there', async () => {
  const page = await openPage(browser, empty, { path: '/ui/log', allow: [/404/] });
  await page.getByText('eventlog.enabled = true').waitFor();
  assert.equal(await page.getByText(/arrived late/).count(), 0);
  assert.equal(await page.getByRole('button', { name: 'Search' }).count(), 0);
  await page.finish();
  const other = await openPage(browser, server, { path: '/ui/log' });
  const alert = other.getByRole('alert');
  await alert.getByText('there is no such folder').waitFor();
  assert.doesNotMatch(await alert.innerText(), /postrider: /);
  const row = other.getByRole('row').filter({ hasText: /\/nowhere/ });
  assert.deepEqual((await row.getByRole('cell').allTextContents()).slice(1, 6), ['–', '–', '–', '–', '–']);
  await other.finish();
});

test('With the database away the page does not look well', async () => {
  const page = await openPage(browser, server, { path: '/ui/projections', allow: [/404/] });
  const overview = await server.get('/api/overview');
  await page.route('**/api/live', (route) => route.fulfill({ status: 404, body: '{}' }));
  await page.route('**/api/overview', (route) =>
    route.fulfill({ json: { ...overview, database: { ...overview.database, up: false }, figures: null } }),
  );
  await page.goto(`${server.url}/ui/audit`);
  await page.locator('.connection.lost').getByText('database away').waitFor();
  await page.unrouteAll();
  await page.locator('.connection.polling').getByText('every 2 s').waitFor();
  await page.finish();
});

test('A good token is changed for another one, and forgotten', async () => {
  const guarded = await Server.start({ tokens: true, routes: false });
  try {
    const other = await guarded.addToken('vera', 'viewer');
    const page = await openPage(browser, guarded, { path: '/ui/topics', allow: [/401/], viewport: phone });
    const use = async (token) => {
      await dialog(page).getByLabel('Token').fill(token);
      await dialog(page).getByRole('button', { name: 'Use it' }).click();
    };
    await use(guarded.token);
    const who = page.locator('.who');
    await who.getByText('anna, admin').waitFor();
    await page.getByRole('button', { name: 'Change token…' }).click();
    await dialog(page).getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Change token…' }).click();
    await use(other);
    await who.getByText('vera, viewer').waitFor();
    await page.locator('.connection').getByText('live').waitFor();
    await page.getByRole('button', { name: 'Change token…' }).click();
    await dialog(page).getByRole('button', { name: 'Forget the token' }).click();
    await dialog(page).getByText('This server asks for a token').waitFor();
    await page.locator('.connection').getByText('no access').waitFor();
    await until('nobody to be named', async () => (await who.count()) === 0);
    assert.equal(await page.evaluate(() => sessionStorage.getItem('postrider.token')), null);
    await page.finish();
  } finally {
    await guarded.remove();
  }
});
