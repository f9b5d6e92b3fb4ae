// SPDX-License-Identifier: Apache-2.0
// A server that dies, one that asks for a token, one without a stream, one with ten thousand events.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openBrowser, openPage, Server, title, until } from './harness.mjs';

let browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

test('A server that is killed is said to be away, and the page goes on when it is back', async () => {
  const server = await Server.start();
  try {
    const allow = [/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/];
    const page = await openPage(browser, server, { path: '/ui/topics', allow });
    const state = page.locator('.connection');
    await state.getByText('live').waitFor();
    await page.getByRole('link', { name: 'wallet-events' }).waitFor();
    await server.down('SIGKILL');
    await page.getByText('No connection to the server.').waitFor();
    await page.getByText('The pairs cannot be read: The server does not answer').waitFor();
    await page.getByRole('link', { name: 'wallet-events' }).waitFor(); // what was known stays
    await page.getByRole('button', { name: 'Pause wallet-events to orders-file' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('dialog').getByText('The server does not answer').waitFor();
    await page.keyboard.press('Escape');
    await server.up();
    await state.getByText('live').waitFor();
    await page.getByText('No connection to the server.').waitFor({ state: 'detached' });
    await page.getByText('The pairs cannot be read').waitFor({ state: 'detached' });
    await page.finish();
  } finally {
    await server.remove();
  }
});

test('Why the database is away is told once', async () => {
  const server = await Server.start({ routes: false });
  try {
    const page = await openPage(browser, server, { path: '/ui/projections', allow: [/404/] });
    const overview = await server.get('/api/overview');
    const reason = 'connection to 127.0.0.1:5432 refused';
    const finding = (text) => ({ cause: 'database-away', text, hint: 'see storage.url, and whether the database runs' });
    const away = async (phase, text) => {
      const now = {
        ...overview,
        node: { ...overview.node, phase },
        database: { ...overview.database, up: false },
        stuck: text,
        findings: [finding(text)],
        figures: null,
      };
      await page.unrouteAll();
      await page.route('**/api/live', (route) => route.fulfill({ status: 404, body: '{}' }));
      await page.route('**/api/overview', (route) => route.fulfill({ json: now }));
      await page.goto(`${server.url}/ui`);
      await page.locator('#stuck').getByText(reason).waitFor();
      const shown = await page.locator('main').innerText();
      assert.equal(shown.split(reason).length - 1, 1, shown);
      assert.equal(shown.match(/database (is away|cannot be reached)/g)?.length ?? 0, text.includes('cannot be reached') ? 1 : 0, shown);
      await page.getByText('The figures come back with the database.').waitFor();
    };
    await away('running', `the database cannot be reached: ${reason}`);
    await away(`waiting for the database: ${reason}`, `waiting for the database: ${reason}`);
    await page.finish();
  } finally {
    await server.remove();
  }
});

test('A database that is away is told once in each view', async () => {
  const server = await Server.start();
  try {
    const detail = 'the database cannot take or answer this now';
    const page = await openPage(browser, server, { path: '/ui', allow: [/503/] });
    let open = 0;
    await page.route(/\/(api|v1)\/(?!live|overview|me|spill)/, async (route) => {
      open += 1;
      await route.fulfill({
        status: 503,
        contentType: 'application/problem+json',
        json: { title: 'Service Unavailable', status: 503, code: 'storage-unavailable', detail, hint: 'try again after a moment' },
      });
      open -= 1;
    });
    const pair = '/ui/topics/wallet-events/orders-file';
    for (const path of [
      '/ui/topics', pair, `${pair}/dead`, '/ui/events', '/ui/events?list=stuck', '/ui/events/1', '/ui/dead', '/ui/dead?type=T', '/ui/queue',
      '/ui/queue/1', '/ui/store', '/ui/projections', '/ui/log', '/ui/nodes', '/ui/audit',
    ]) {
      await page.goto(server.url + path);
      await page.getByText(detail).first().waitFor();
      await until('all answers', async () => open === 0 && (await page.locator('.loading').count()) === 0);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      const shown = await page.locator('main').innerText();
      assert.equal(shown.split(detail).length - 1, 1, `${path}: ${shown}`);
    }
    await page.finish();
  } finally {
    await server.remove();
  }
});

test('A token is asked for, kept in the tab alone, and asked for again when it is wrong', async () => {
  const server = await Server.start({ tokens: true });
  try {
    const page = await openPage(browser, server, { path: '/ui/topics', allow: [/401/] });
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Token').fill('prt_wrong');
    await dialog.getByRole('button', { name: 'Use it' }).click();
    await dialog.getByText('is not known to the server').waitFor();
    await dialog.getByLabel('Token').fill(server.token);
    await dialog.getByRole('button', { name: 'Use it' }).click();
    await page.getByRole('link', { name: 'wallet-events' }).waitFor();
    await page.locator('.connection').getByText('live').waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'wallet-events' }).waitFor();
    const where = await page.evaluate(() => [JSON.stringify(localStorage), document.cookie, location.href].join());
    assert.ok(!where.includes('prt_'), where);
    await page.finish();
  } finally {
    await server.remove();
  }
});

test('Without a stream it asks every two seconds', async () => {
  const server = await Server.start({ routes: false });
  try {
    const page = await openPage(browser, server, { path: '/ui/projections', allow: [/404/] });
    await page.route('**/api/live', (route) => route.fulfill({ status: 404, body: '{}' }));
    await page.goto(`${server.url}/ui`);
    await page.locator('.connection').getByText('every 2 s').waitFor();
    await page.locator('.chart canvas').first().waitFor();
    await page.finish();
  } finally {
    await server.remove();
  }
});

test('Ten thousand events stay quick, and only those in sight are in the page', async () => {
  const server = await Server.start({ routes: false });
  try {
    await server.publish(
      Array.from({ length: 10_000 }, (_, i) => ({ type: 'Counted', aggregateType: 'N', aggregateId: String(i), payload: { i } })),
    );
    const page = await openPage(browser, server, { path: '/ui/events' });
    const box = page.getByRole('region', { name: 'Events' });
    await box.waitFor();
    const foot = page.locator('.table-foot');
    await until(
      'all to be there',
      async () => {
        await box.evaluate((element) => (element.scrollTop = element.scrollHeight));
        return (await foot.textContent()).startsWith('10,000 in all');
      },
      60,
    );
    assert.ok((await page.locator('tbody tr').count()) < 100, 'a window of the rows');
    // From one end to the other in steps, each drawn.
    const steps = await box.evaluate(async (element) => {
      const times = [];
      for (let step = 0; step <= 40; ++step) {
        const begin = performance.now();
        element.scrollTop = (element.scrollHeight * step) / 40;
        await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
        times.push(performance.now() - begin);
      }
      return times.sort((a, b) => a - b);
    });
    // A page that held all rows would be slow at every step; a single slow one is the machine's.
    const usual = steps[Math.floor(steps.length / 2)];
    console.log(`a step: ${usual.toFixed(0)} ms, the slowest: ${steps.at(-1).toFixed(0)} ms`);
    assert.ok(usual < 250, `${usual} ms`);
    // The row that should be at the very end is there, and at its place.
    await box.evaluate((element) => (element.scrollTop = element.scrollHeight));
    const last = page.locator('tr[aria-rowindex="10001"]');
    await last.waitFor();
    assert.ok(await last.isVisible());
    assert.equal(await page.locator('table').getAttribute('aria-rowcount'), '10001');
    await page.finish();
  } finally {
    await server.remove();
  }
});

test('Addresses are views: back and forward go through them', async () => {
  const server = await Server.start({ routes: false });
  try {
    const page = await openPage(browser, server, { path: '/ui/events?status=DEAD' });
    await title(page, 'Events');
    assert.equal(await page.getByLabel('Status').inputValue(), 'DEAD');
    await page.getByRole('link', { name: 'Store' }).click();
    await title(page, 'Store');
    await page.goBack();
    await title(page, 'Events');
    assert.equal(await page.getByLabel('Status').inputValue(), 'DEAD');
    await page.goForward();
    await title(page, 'Store');
    await page.finish();
  } finally {
    await server.remove();
  }
});
