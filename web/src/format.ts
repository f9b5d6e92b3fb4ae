// SPDX-License-Identifier: Apache-2.0
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

export const count = (value: number): string => whole.format(value);
export const rate = (value: number): string => (value < 100 ? tenth : whole).format(value);

/// 4 s, 3 min, 2 h 10 min, 5 d
export function duration(seconds: number): string {
  if (seconds < 0.0005) return '0 s';
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? tenth.format(seconds) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d`;
}

/// 512 B, 4.2 KiB, 50 MiB
export function bytes(size: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    ++unit;
  }
  return `${(unit > 0 && size < 10 ? tenth : whole).format(size)} ${units[unit]}`;
}

const two = (value: number) => String(value).padStart(2, '0');

/// In the reader's zone: 2026-11-16 17:20:58
export function time(text: string | null | undefined): string {
  if (!text) return '–';
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function ago(text: string | null | undefined): string {
  if (!text) return '–';
  const seconds = (Date.now() - Date.parse(text)) / 1000;
  return seconds >= 0 ? `${duration(Math.max(1, Math.round(seconds)))} ago` : `in ${duration(-seconds)}`;
}

/// For a POSIX shell, whatever is in it.
export const shellQuoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
