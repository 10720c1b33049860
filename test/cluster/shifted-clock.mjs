// Preloaded into a broker whose machine's clock is off: Date is FLOE_TEST_CLOCK_SHIFT_MS ahead (or behind, if negative).
// Clocks that only go (performance.now, timers) are right, as they are on such a machine.
const shiftMs = Number(process.env['FLOE_TEST_CLOCK_SHIFT_MS'] ?? 0);
const Real = Date;

globalThis.Date = new Proxy(Real, {
  construct: (_, args, target) =>
    Reflect.construct(Real, args.length === 0 ? [Real.now() + shiftMs] : args, target),
  apply: () => new Real(Real.now() + shiftMs).toString(),
  get: (_, name) => (name === 'now' ? () => Real.now() + shiftMs : Reflect.get(Real, name)),
});
