// SPDX-License-Identifier: Apache-2.0
import { render } from 'preact';
import { App } from './app';
import { startLive } from './live';
import { applyTheme } from './theme';
import './style.css';

applyTheme();
startLive();
const root = document.getElementById('app');
if (root) render(<App />, root);
