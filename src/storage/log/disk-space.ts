// Room on the disk: a ballast file that is released when the disk is full, so that deletions can still be recorded,
// and a water mark below which Produce is refused while reads, deletes and retention go on.
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Disk } from './disk.ts';

export interface DiskSpaceOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly reserveBytes: number;
  readonly ballastBytes: number;
  /** Frees what is only there for speed (the recycle pool). */
  readonly release: () => void;
}

/** From this much free space on Produce is taken again, after it was refused; below it, what can wait waits. */
export function roomyBytes(
  limits: Pick<DiskSpaceOptions, 'reserveBytes' | 'ballastBytes'>,
): number {
  return limits.reserveBytes * 1.25 + limits.ballastBytes;
}

const BALLAST = 'ballast';
const CHECK_EVERY_MS = 1_000;
const CHUNK = new Uint8Array(1024 * 1024);

export class DiskSpace {
  readonly #options: DiskSpaceOptions;
  #checkedMs = -Infinity;
  #low = false;
  #ballast = false;

  constructor(options: DiskSpaceOptions) {
    this.#options = options;
    this.#fill();
  }

  /** @throws FloeError `exhausted`, with the remedy, while too little disk is free. Looks once a second. */
  check(): void {
    const now = this.#options.clock.monotonic();
    if (now - this.#checkedMs >= CHECK_EVERY_MS) {
      this.#checkedMs = now;
      this.#look();
    }
    if (this.#low) {
      throw new FloeError(
        'exhausted',
        `less than log.disk.reserve.bytes (${this.#options.reserveBytes}) of disk is free: ` +
          'free space, shorten retention or delete topics; reads and deletes go on',
      );
    }
  }

  /** A write found the disk full. */
  ranOut(): void {
    this.#enterLow();
    this.#checkedMs = this.#options.clock.monotonic();
  }

  #look(): void {
    const { disk, reserveBytes } = this.#options;
    const free = disk.freeBytes();
    if (this.#low) {
      // Some way above the mark, or the state would flap with every retention run.
      if (free < roomyBytes(this.#options)) return;
      this.#low = false;
      this.#fill();
      return;
    }
    if (free >= reserveBytes) return;
    this.#options.release();
    if (disk.freeBytes() < reserveBytes) this.#enterLow();
  }

  #enterLow(): void {
    if (this.#low) return;
    this.#low = true;
    this.#options.logger.error({}, 'disk nearly full: Produce is refused until space is freed');
    try {
      this.#options.release();
      if (this.#ballast) this.#options.disk.unlink(BALLAST);
      this.#ballast = false;
    } catch (caught) {
      // Called where a flush has failed already: a disk that can't even unlink must not take the process along.
      this.#options.logger.warn({ error: String(caught) }, 'no space could be released');
    }
  }

  #fill(): void {
    const { disk, ballastBytes, reserveBytes } = this.#options;
    if (disk.list('').includes(BALLAST)) disk.unlink(BALLAST);
    this.#ballast = false;
    if (ballastBytes === 0 || disk.freeBytes() < reserveBytes + ballastBytes) return;
    try {
      const file = disk.open(BALLAST, 'create');
      for (let at = 0; at < ballastBytes; at += CHUNK.length)
        file.pwritev([CHUNK.subarray(0, Math.min(CHUNK.length, ballastBytes - at))], at);
      file.close();
      this.#ballast = true;
    } catch (caught) {
      this.#options.logger.warn({ error: String(caught) }, 'no ballast file');
      disk.unlink(BALLAST);
    }
  }
}
