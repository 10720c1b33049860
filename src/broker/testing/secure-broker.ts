// A broker for tests whose listeners are secured by settings, as `floe serve` would read them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../base/clock.ts';
import { type Logger, silentLogger } from '../../base/log.ts';
import { seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import {
  listenersOf,
  openSecurity,
  type Security,
  securitySettings,
  splitListenerSettings,
} from '../auth/index.ts';
import { TEST_CERTIFICATE, TEST_KEY } from './certificate.ts';
import { startTestBroker, type TestBroker, type TestBrokerOptions } from './harness.ts';

export interface SecureBroker extends TestBroker {
  readonly security: Security;
  /** Port of a listener by its name. */
  portOf(listener: string): number;
}

/** `given` holds security settings as text, `listeners` among them; files that they name must exist. */
export async function startSecureBroker(
  given: Readonly<Record<string, string>>,
  options: TestBrokerOptions & { readonly clock?: Clock; readonly logger?: Logger } = {},
): Promise<SecureBroker> {
  const metadata = options.metadata ?? openSqliteMetadata(':memory:');
  const { common, byListener } = splitListenerSettings(given);
  const settings = resolveSettings(securitySettings, common);
  const fallback = { host: '127.0.0.1', port: 0 };
  const listeners = listenersOf({ settings, byListener, fallback });
  const security = await openSecurity({
    settings,
    listeners,
    metadata: metadata.security,
    clock: options.clock ?? systemClock,
    prng: seededPrng(7),
    logger: options.logger ?? silentLogger,
  });
  const test = await startTestBroker({ ...options, metadata, security, listeners });
  return {
    ...test,
    security,
    portOf: (name) => test.broker.addresses.find((bound) => bound.name === name)!.port,
  };
}

export interface TestFiles {
  /** Path of a file with this content. */
  write(name: string, content: string): string;
  remove(): void;
}

/** A folder for files that settings name. */
export function testFiles(): TestFiles {
  const folder = mkdtempSync(join(tmpdir(), 'floe-auth-'));
  return {
    write(name, content) {
      const path = join(folder, name);
      writeFileSync(path, content);
      return path;
    },
    remove: () => rmSync(folder, { recursive: true }),
  };
}

/** The test certificate and its key as one PEM. */
export const TEST_KEYSTORE = `${TEST_KEY}\n${TEST_CERTIFICATE}\n`;
