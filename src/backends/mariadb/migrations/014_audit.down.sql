DROP TABLE IF EXISTS {schema}_audit;
