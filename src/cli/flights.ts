// Real input for the demo and the benchmarks: three million flights of the npm package vega-datasets, as plain values.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';

export interface Flight {
  /** Milliseconds since the epoch. */
  readonly date: number;
  readonly delay: number;
  readonly distance: number;
  readonly origin: string;
  readonly destination: string;
}

export const FLIGHT_SCHEMA = JSON.stringify({
  type: 'record',
  name: 'Flight',
  namespace: 'floe.demo',
  fields: [
    { name: 'date', type: { type: 'long', logicalType: 'timestamp-millis' } },
    { name: 'delay', type: 'long' },
    { name: 'distance', type: 'long' },
    { name: 'origin', type: 'string' },
    { name: 'destination', type: 'string' },
  ],
});

/** Where the Parquet file lies. */
export function flightsFile(): string {
  const entry = createRequire(import.meta.url).resolve('vega-datasets/package.json');
  return join(dirname(entry), 'data', 'flights-3m.parquet');
}

/** The first `rows` flights in arrays of at most `batch`. */
export async function* readFlights(rows: number, batch: number): AsyncGenerator<Flight[]> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    const result = await connection.stream(
      `SELECT epoch_ms(date::TIMESTAMP)::DOUBLE, delay::INT, distance::INT, origin, destination
       FROM read_parquet('${flightsFile()}') LIMIT ${rows}`,
    );
    let flights: Flight[] = [];
    for (
      let chunk = await result.fetchChunk();
      chunk !== null && chunk.rowCount > 0;
      chunk = await result.fetchChunk()
    ) {
      const [date, delay, distance, origin, destination] = chunk.getColumns() as [
        number[],
        number[],
        number[],
        string[],
        string[],
      ];
      for (let i = 0; i < chunk.rowCount; i += 1) {
        flights.push({
          date: date[i]!,
          delay: delay[i]!,
          distance: distance[i]!,
          origin: origin[i]!,
          destination: destination[i]!,
        });
        if (flights.length === batch) {
          yield flights;
          flights = [];
        }
      }
    }
    if (flights.length > 0) yield flights;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
