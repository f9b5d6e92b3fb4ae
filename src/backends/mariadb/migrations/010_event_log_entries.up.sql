-- Entries of the Event Log API, as loggers send them. Not to be mixed up with event_log, which is where the queue's finished
-- events go. Times are UTC. Every statement can be repeated, because DDL commits by itself.
--
-- Words such as "about" are worth finding in a log; the choice is made once, by the session that creates the index.
SET SESSION innodb_ft_enable_stopword = OFF;
CREATE TABLE IF NOT EXISTS {schema}_event_log_entries (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  application_id VARCHAR(128) NOT NULL,
  correlation_id VARCHAR(128) NOT NULL,
  process_name VARCHAR(200) NOT NULL,
  process_status VARCHAR(64) NOT NULL,
  step VARCHAR(200),
  details MEDIUMTEXT,
  target_system VARCHAR(128),
  originating_system VARCHAR(128),
  user_id VARCHAR(128),
  -- The sender's clock, and ours.
  occurred_at DATETIME(6) NOT NULL,
  received_at DATETIME(6) NOT NULL,
  -- Unique within an application: a repeat finds the first one.
  idempotency_key VARCHAR(128),
  -- Members that we do not know, as one JSON object.
  extras MEDIUMTEXT,
  -- What is a word is the same on all databases: punctuation parts words. Left to itself, InnoDB would take PET_RESORT for one.
  words MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci GENERATED ALWAYS AS
    (REGEXP_REPLACE(CONCAT_WS(' ', process_name, step, details), '[^\\p{L}\\p{N}]+', ' ')) STORED,
  -- Each ends in the id, as the order of pages does.
  KEY event_log_entries_time (occurred_at, id),
  KEY event_log_entries_correlation (correlation_id, occurred_at, id),
  KEY event_log_entries_application (application_id, occurred_at, id),
  UNIQUE KEY event_log_entries_key (application_id, idempotency_key),
  FULLTEXT KEY event_log_entries_words (words),
  CHECK (occurred_at >= '1000-01-01' AND received_at >= '1000-01-01')
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
SET SESSION innodb_ft_enable_stopword = DEFAULT;
