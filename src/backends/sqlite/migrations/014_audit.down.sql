DROP TABLE {schema}_audit;
