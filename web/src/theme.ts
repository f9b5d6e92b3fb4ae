// SPDX-License-Identifier: Apache-2.0
export type Theme = 'auto' | 'light' | 'dark';
const key = 'postrider.theme';

export function theme(): Theme {
  const kept = localStorage.getItem(key);
  return kept === 'light' || kept === 'dark' ? kept : 'auto';
}

export function applyTheme(): void {
  const chosen = theme();
  if (chosen === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  dispatchEvent(new Event('postrider:theme'));
}

export function chooseTheme(to: Theme): void {
  if (to === 'auto') localStorage.removeItem(key);
  else localStorage.setItem(key, to);
  applyTheme();
}
