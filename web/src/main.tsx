// SPDX-License-Identifier: Apache-2.0
import { render } from 'preact';
import { App } from './app';
import { startLive } from './live';
import { applyTheme } from './theme';
import { showAllCharacters } from './visible';
import './style.css';

applyTheme();
showAllCharacters();
startLive();
const root = document.getElementById('app');
if (root) render(<App />, root);
