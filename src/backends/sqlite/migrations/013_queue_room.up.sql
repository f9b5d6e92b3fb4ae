-- Room for what a claim writes into a row (owner, lease, start): a claim takes from here what it needs there, so that the row
-- keeps its size. A row that grows moves others out of a full page, and each claim would write most of its pages twice.
ALTER TABLE {schema}_event_queue ADD COLUMN room BLOB DEFAULT x'000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000';
