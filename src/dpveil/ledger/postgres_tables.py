"""Tables of a ledger in PostgreSQL, and what is checked of them before they are used.

Whoever owns a table may put triggers, rules and policies on it that change what is written. So the schema and
its tables have to be the user's own, or a superuser's, and made as here. Whoever was granted to change them
can forge all of it, so nobody else may; others may read, which needs USAGE of the schema.
"""

from __future__ import annotations

from typing import Any, Final

from dpveil.errors import LedgerError
from dpveil.io.names import shown

SCHEMA: Final = "dpveil_ledger"
TABLES: Final = (
    "CREATE TABLE ledger (name text NOT NULL, secret text NOT NULL)",
    "CREATE TABLE entries (number bigint PRIMARY KEY, head text NOT NULL, unit text, sha256 text,"
    " text text NOT NULL)",
    "CREATE INDEX entries_by_unit ON entries (unit)",
    "CREATE INDEX entries_by_sha256 ON entries (sha256)",
    'CREATE TABLE subjects (subject text COLLATE "C" PRIMARY KEY, cost text NOT NULL, relation text NOT NULL,'
    " limits text NOT NULL)",
    "CREATE TABLE reservations (id text PRIMARY KEY, subject text NOT NULL, unit text NOT NULL,"
    " cost text NOT NULL, relation text NOT NULL, expires bigint NOT NULL)",
)
COLUMNS: Final = {
    "ledger": "name text!, secret text!",
    "entries": "number bigint! key, head text!, unit text, sha256 text, text text!",
    "subjects": "subject text! key, cost text!, relation text!, limits text!",
    "reservations": "id text! key, subject text!, unit text!, cost text!, relation text!, expires bigint!",
}
"""The columns of `TABLES` in order, with ! where NULL is refused, and the primary keys."""
OWNED: Final = """
    SELECT count(*) FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid
    WHERE n.nspname = %s AND EXISTS (
        SELECT FROM pg_roles r WHERE r.oid IN (n.nspowner, c.relowner)
        AND NOT r.rolsuper AND r.rolname <> current_user)
"""
ODD: Final = """
    SELECT c.relname FROM pg_class c JOIN pg_namespace n ON c.relnamespace = n.oid
    WHERE n.nspname = %s AND c.relkind <> 'i' AND (
        c.relkind <> 'r' OR c.relpersistence <> 'p' OR c.relhasrules OR c.relhastriggers
        OR c.relrowsecurity OR c.relhassubclass OR c.relispartition
        OR EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = c.oid))
"""
GRANTED: Final = """
    SELECT coalesce(r.rolname, 'everybody'), given.privilege_type FROM (
        SELECT n.nspacl AS acl FROM pg_namespace n WHERE n.nspname = %(schema)s
        UNION ALL SELECT c.relacl FROM pg_class c JOIN pg_namespace n ON c.relnamespace = n.oid
            WHERE n.nspname = %(schema)s
        UNION ALL SELECT a.attacl FROM pg_attribute a JOIN pg_class c ON a.attrelid = c.oid
            JOIN pg_namespace n ON c.relnamespace = n.oid WHERE n.nspname = %(schema)s
    ) AS found CROSS JOIN LATERAL aclexplode(found.acl) AS given LEFT JOIN pg_roles r ON r.oid = given.grantee
    WHERE given.privilege_type NOT IN ('SELECT', 'USAGE') AND (
        given.grantee = 0 OR r.oid IS NULL OR NOT r.rolsuper AND r.rolname <> current_user)
    ORDER BY 1, 2
"""
"""What users other than this one and superusers may do besides reading; a grantee of 0 is everybody."""
FOUND: Final = """
    SELECT c.relname, string_agg(
        a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
        || CASE WHEN a.attnotnull THEN '!' ELSE '' END
        || CASE WHEN EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary
            AND i.indisvalid AND i.indkey::text = a.attnum::text) THEN ' key' ELSE '' END,
        ', ' ORDER BY a.attnum)
    FROM pg_class c JOIN pg_namespace n ON c.relnamespace = n.oid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE n.nspname = %s AND c.relkind = 'r' GROUP BY c.relname
"""


def check_tables(opened: Any, place: str) -> None:
    """Raise `LedgerError` unless schema and tables are there, safe from other users, and as in `TABLES`."""
    if opened.execute("SELECT to_regnamespace(%s)", (SCHEMA,)).fetchone() == (None,):
        hint = "check the name; dpveil ledger limit makes one where there is none"
        raise LedgerError(f"there is no ledger at {place}", hint=hint)
    if opened.execute(OWNED, (SCHEMA,)).fetchone() != (0,):
        raise _foreign(place, "belongs to another user")
    if opened.execute(ODD, (SCHEMA,)).fetchone() is not None:
        raise _foreign(place, "has triggers, rules, policies or other things than plain tables")
    if (granted := opened.execute(GRANTED, {"schema": SCHEMA}).fetchone()) is not None:
        who, what = map(str, granted)
        raise LedgerError(
            f"the schema {SCHEMA} at {place} can be changed by {shown(who)}, who may {what}",
            hint="revoke it, and run dpveil ledger check with a head that was kept",
        )
    if dict(opened.execute(FOUND, (SCHEMA,)).fetchall()) != COLUMNS:
        raise _foreign(place, "has other tables than a ledger")


def _foreign(place: str, why: str) -> LedgerError:
    return LedgerError(
        f"the schema {SCHEMA} at {place} {why}",
        hint="do not use it: have it removed, or name another database",
    )
