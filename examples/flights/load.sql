-- Loads both files from this folder, with "highwater sql" or psql:
--
--     psql -h 127.0.0.1 -p 7432 -U highwater -f load.sql
--
-- psql reads no packed files; unpack it first:  gzip -dk flights-2013-01.csv.gz

\copy airlines from 'airlines.csv' csv header
\copy flights from 'flights-2013-01.csv' csv header null 'NA'
