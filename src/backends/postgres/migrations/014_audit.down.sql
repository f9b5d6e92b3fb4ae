DROP TABLE {schema}.audit;
