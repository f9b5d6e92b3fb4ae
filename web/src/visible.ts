// SPDX-License-Identifier: Apache-2.0
// Names and errors are of strangers: a control character in them would be an empty box, or turn what is behind it
// around. It is shown as the command line shows it: \x1b, \u202e.
import { options } from 'preact';

// Of C0 all but tab and line feed, DEL, C1, and what changes the direction of text.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export const visible = (text: string): string =>
  text.replace(hidden, (one) => {
    const code = one.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`;
  });

/// Every text that comes into the page goes through here: one place, so that none is forgotten.
export function showAllCharacters(): void {
  const before = options.vnode;
  options.vnode = (node) => {
    if (node.type === null && typeof (node.props as unknown) === 'string') {
      node.props = visible(node.props as unknown as string) as unknown as typeof node.props;
    }
    before?.(node);
  };
}
