-- What people changed through the management API: who, what, when (UTC). Added to, never changed.
CREATE TABLE IF NOT EXISTS {schema}_audit (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  made_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  who VARCHAR(64) NOT NULL,
  what TEXT NOT NULL,
  KEY audit_who (who, id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 /*M!100600 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */;
