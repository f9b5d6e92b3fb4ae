// SPDX-License-Identifier: Apache-2.0
// Makes the dashboard: one script, one style sheet, one page; and, when asked to, a C++ file that has them inside.
//
//   node build.mjs OUT-FOLDER [OUT.cpp]
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const [out = join(here, 'dist'), cpp] = process.argv.slice(2);
mkdirSync(out, { recursive: true });

await build({
  entryPoints: [join(here, 'src/main.tsx')],
  outfile: join(out, 'app.js'),
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'linked',
  logLevel: 'warning',
});

// What a browser keeps is named by its content, so that a new version is seen at once.
const name = (file) => {
  const hash = createHash('sha256').update(readFileSync(join(out, file))).digest('hex').slice(0, 12);
  const [stem, extension] = file.split('.');
  return `${stem}-${hash}.${extension}`;
};
const assets = [
  { file: 'app.js', path: name('app.js'), type: 'text/javascript; charset=utf-8' },
  { file: 'app.css', path: name('app.css'), type: 'text/css; charset=utf-8' },
];
let page = readFileSync(join(here, 'src/index.html'), 'utf8');
for (const asset of assets) page = page.replaceAll(`/${asset.file}`, `/${asset.path}`);
writeFileSync(join(out, 'index.html'), page);
assets.unshift({ file: 'index.html', path: 'index.html', type: 'text/html; charset=utf-8' });

if (cpp) {
  const bytes = (buffer) => {
    const lines = [];
    for (let at = 0; at < buffer.length; at += 32) lines.push([...buffer.subarray(at, at + 32)].join(','));
    return lines.join(',\n');
  };
  const arrays = [];
  const entries = [];
  assets.forEach((asset, i) => {
    const packed = gzipSync(readFileSync(join(out, asset.file)), { level: 9 });
    arrays.push(`constexpr unsigned char asset_${i}[] = {\n${bytes(packed)}};`);
    entries.push(`    {"${asset.path}", "${asset.type}", asset_${i}, sizeof(asset_${i})},`);
  });
  const text = `// Made by web/build.mjs.
#include "app/daemon/dashboard.hpp"

namespace postrider::daemon {
namespace {

${arrays.join('\n')}

constexpr DashboardAsset all_assets[] = {
${entries.join('\n')}
};

}  // namespace

std::span<const DashboardAsset> dashboard_assets() noexcept {
  return all_assets;
}

}  // namespace postrider::daemon
`;
  mkdirSync(dirname(cpp), { recursive: true });
  writeFileSync(cpp, text);
}
