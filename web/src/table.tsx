// SPDX-License-Identifier: Apache-2.0
// A table that has only the rows in sight in the page, so that ten thousand are as quick as ten.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  number?: boolean; // aligned at its end
  wide?: boolean; // takes what is left
  minor?: boolean; // not on a phone
  action?: boolean; // its buttons stay in sight when the rest is scrolled
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  id: (row: T) => string;
  open?: (row: T) => void; // by click on the row or Enter; a link in it serves as well
  selected?: string | null;
  onEnd?: () => void; // the last row is near
  more?: boolean;
  wrap?: boolean; // long texts take several lines, as long as there are few rows
}

/// A text that is cut is told in whole to whoever points at it.
function tellCut(event: Event): void {
  const cell = event.target instanceof Element ? event.target.closest('td') : null;
  if (!cell) return;
  if (cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent ?? '';
  else cell.removeAttribute('title');
}

const rowHeight = 37; // as style.css has it
const beyond = 12;
const withoutWindow = 60;

export function Table<T>({ label, columns, rows, id, open, selected, onEnd, more, wrap }: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const windowed = rows.length > withoutWindow;

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => setView({ top: element.scrollTop, height: element.clientHeight });
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    element.addEventListener('scroll', look, { passive: true });
    return () => {
      sizes.disconnect();
      element.removeEventListener('scroll', look);
    };
  }, []);

  const first = windowed ? Math.max(0, Math.min(Math.floor(view.top / rowHeight), rows.length) - beyond) : 0;
  const last = windowed
    ? Math.min(rows.length, Math.ceil((view.top + view.height) / rowHeight) + beyond)
    : rows.length;
  const atEnd = last >= rows.length;
  useEffect(() => {
    if (atEnd && more && windowed && onEnd) onEnd();
  }, [atEnd, more, windowed, rows.length]);

  const space = (count: number) =>
    count > 0 && (
      <tr aria-hidden="true" class="space">
        <td colSpan={columns.length} style={{ height: `${count * rowHeight}px` }} />
      </tr>
    );
  const kind = (column: Column<T>) =>
    [column.number && 'number', column.wide && 'wide', column.minor && 'minor', column.action && 'action'].filter(Boolean).join(' ');
  const look = ['table-box', windowed && 'windowed', wrap && !windowed && 'wrapped'].filter(Boolean).join(' ');

  return (
    <div class={look} ref={box} tabIndex={0} role="region" aria-label={label} onMouseOver={tellCut}>
      <table aria-rowcount={more ? -1 : rows.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={kind(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {space(first)}
          {rows.slice(first, last).map((row, i) => (
            <tr
              key={id(row)}
              aria-rowindex={first + i + 2}
              class={[open && 'opens', selected === id(row) && 'selected'].filter(Boolean).join(' ')}
              onClick={
                open &&
                ((event) => {
                  if (event.target instanceof Element && event.target.closest('a, button, input, label')) return;
                  open(row);
                })
              }
            >
              {columns.map((column) => (
                <td key={column.title} class={kind(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
          {space(rows.length - last)}
        </tbody>
      </table>
    </div>
  );
}
