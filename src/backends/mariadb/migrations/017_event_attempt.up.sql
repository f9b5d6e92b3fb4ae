-- Attempts of the queue's events that did not simply succeed, of those in the queue and of those in the log. `token` is that of the
-- claim: one claim, one line. Times are UTC.
CREATE TABLE IF NOT EXISTS {schema}_event_attempt (
  id BIGINT NOT NULL,
  token BIGINT NOT NULL,
  attempt INT NOT NULL,
  started_at DATETIME(6),
  at DATETIME(6) NOT NULL,
  owner VARCHAR(64),
  -- 0 RETRY, 2 FAILED, 3 COMPLETED_WITH_ERRORS, 4 CRASHED
  outcome TINYINT NOT NULL,
  error TEXT,
  PRIMARY KEY (id, token),
  CHECK (outcome IN (0, 2, 3, 4))
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
