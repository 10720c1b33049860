// What the store keeps of its own lineage (lineage.ts): a contradiction, once one is known, and the trigger that refuses
// commits from then on.
import { CONTRADICTED } from './lineage.ts';
import type { Migration } from './migrations.ts';

export const lineageMigrations: readonly Migration[] = [
  {
    name: 'lineage-1',
    sql: `
      -- Null: all is well. Else what a broker knew that isn't here.
      ALTER TABLE log_counter ADD COLUMN contradiction text;
      CREATE FUNCTION refuse_contradicted() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION '%', OLD.contradiction USING ERRCODE = '${CONTRADICTED}'; END $$;
      CREATE TRIGGER refuse_contradicted BEFORE UPDATE OF last_commit ON log_counter FOR EACH ROW
        WHEN (OLD.contradiction IS NOT NULL) EXECUTE FUNCTION refuse_contradicted();`,
  },
];
