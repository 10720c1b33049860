import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { servedApis } from '../src/broker/index.ts';
import { settingsByArea } from '../src/cli/settings.ts';
import { alarms, dashboard } from './operations.ts';
import { apisPage, handlerHeaders, settingsPage } from './pages.ts';

const docs = join(import.meta.dirname, '..', 'docs');

test.each([
  ['settings.md', settingsPage],
  ['apis.md', apisPage],
  ['operations/grafana.json', dashboard],
  ['operations/alarms.yaml', alarms],
])('docs/%s is what the code says (npm run docs)', (name, page) => {
  expect(readFileSync(join(docs, name), 'utf8')).toBe(page());
});

test('the header of each handler names its API and the versions that it serves', () => {
  const told = handlerHeaders().map(({ key, name, min, max }) => ({ key, name, min, max }));
  expect(told).toEqual(servedApis().map(({ key, name, min, max }) => ({ key, name, min, max })));
});

test('no setting is defined by two parts', () => {
  const names = Object.values(settingsByArea).flatMap((settings) => Object.keys(settings));
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});
