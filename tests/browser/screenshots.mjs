// SPDX-License-Identifier: Apache-2.0
// Makes the pictures of docs/dashboard.md:
//
//   POSTRIDER_PROGRAM=build/dev/bin/postrider node tests/browser/screenshots.mjs docs/screenshots
import { join } from 'node:path';
import { openBrowser, openPage, Server } from './harness.mjs';

const out = process.argv[2];
const server = await Server.start();
const browser = await openBrowser();
try {
  await server.seed({ strange: false });
  const shoot = async (name, path, colorScheme, seconds) => {
    const page = await openPage(browser, server, { path, colorScheme, viewport: { width: 1180, height: 760 } });
    for (let i = 0; i < seconds * 2; ++i) {
      const some = Math.round(6 + 5 * Math.sin(i / 4));
      await server.publish(Array.from({ length: some }, (_, k) => ({ type: 'OrderPlaced', payload: { k } })));
      await server.send('/append', { events: Array.from({ length: some }, () => ({ type: 'Credited', tags: ['wallet=1'], data: '{}' })) });
      await page.waitForTimeout(500);
    }
    await page.waitForTimeout(1500);
    await page.screenshot({ path: join(out, `${name}.png`) });
    await page.finish();
  };
  await shoot('overview-light', '/ui', 'light', 15);
  await shoot('overview-dark', '/ui', 'dark', 15);
  await shoot('topics', '/ui/topics/wallet-events/orders-file', 'light', 6);
  await shoot('dead-letters', '/ui/dead', 'light', 0);
} finally {
  await browser.close();
  await server.remove();
}
