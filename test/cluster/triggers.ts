// Statements that the server itself breaks off: triggers on every table of a migrated database, which raise the error that
// the setting `floe.refuse` names, in the share of statements that it names, before a statement writes and once more at
// COMMIT. They do nothing while it is empty. So transactions end as they do after a serialization failure, a deadlock or
// a full disk, with everything that the server does then.

/** To be run once. */
export const REFUSING_TRIGGERS = `
  CREATE FUNCTION refuse_now() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    rule text := current_setting('floe.refuse', true);
  BEGIN
    IF coalesce(rule, '') <> '' AND random() < split_part(rule, ' ', 2)::float8 THEN
      RAISE EXCEPTION 'refused by the test' USING ERRCODE = split_part(rule, ' ', 1);
    END IF;
    RETURN NULL;
  END $$;
  CREATE FUNCTION refuse_before() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    rule text := current_setting('floe.refuse', true);
  BEGIN
    -- A transaction has several statements: each fails less often than all of them together.
    IF coalesce(rule, '') <> '' AND random() < split_part(rule, ' ', 2)::float8 / 5 THEN
      RAISE EXCEPTION 'refused by the test' USING ERRCODE = split_part(rule, ' ', 1);
    END IF;
    RETURN NULL;
  END $$;
  DO $$
  DECLARE
    name regclass;
  BEGIN
    FOR name IN SELECT oid FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition
      AND relnamespace = 'public'::regnamespace
    LOOP
      EXECUTE format('CREATE TRIGGER refuse_before BEFORE INSERT OR UPDATE OR DELETE ON %s
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_before()', name);
    END LOOP;
  END $$;
  CREATE CONSTRAINT TRIGGER refuse_commit AFTER UPDATE ON log_counter DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION refuse_now();`;

/** What a server says of transactions that it breaks off, and of those that it has no room for. */
export const REFUSALS = [
  '40001', // serialization_failure
  '40P01', // deadlock_detected
  '53100', // disk_full
  '53200', // out_of_memory
  '55P03', // lock_not_available
  '57014', // query_canceled
  '58030', // io_error
] as const;
