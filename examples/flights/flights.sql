-- January 2013's departures from New York, as a stream, and three continuous queries over them.
--
-- Run this once, then load.sql (or let "highwater demo" play the month). Results are there while the events come in.

-- One record for each departure that the airlines had scheduled. A value that the source marks as NA is NULL: a cancelled flight
-- has no dep_time. The event time is the scheduled hour. The key is the carrier, so the records of one carrier stay in their order.
CREATE STREAM flights (
    year INT,
    month INT,
    day INT,
    dep_time INT,
    sched_dep_time INT,
    dep_delay INT,
    arr_time INT,
    sched_arr_time INT,
    arr_delay INT,
    carrier VARCHAR KEY,
    flight INT,
    tailnum VARCHAR,
    origin VARCHAR,
    dest VARCHAR,
    air_time INT,
    distance INT,
    hour INT,
    minute INT,
    time_hour VARCHAR
) WITH (
    kafka_topic = 'flights',
    partitions = 4,
    key_format = 'KAFKA',
    value_format = 'JSON',
    timestamp = 'time_hour',
    timestamp_format = 'yyyy-MM-dd''T''HH:mm:ssX'
);

-- The airlines' names.
CREATE TABLE airlines (
    carrier VARCHAR PRIMARY KEY,
    name VARCHAR
) WITH (
    kafka_topic = 'airlines',
    partitions = 1,
    key_format = 'KAFKA',
    value_format = 'JSON'
);

-- How late each carrier leaves, hour by hour. The file is in the order of actual departures, so a flight that left 18 hours late
-- comes 18 hours after its scheduled hour: a grace period of two days makes no record late.
CREATE TABLE delays_by_hour AS
SELECT
    carrier,
    COUNT(*) AS flights,
    AVG(dep_delay) AS mean_delay,
    MAX(dep_delay) AS max_delay
FROM flights
WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 2 DAYS)
GROUP BY carrier
EMIT CHANGES;

-- How many flights each route has had so far, and how late they arrive. The key has two columns, which the KAFKA format cannot hold.
CREATE TABLE routes WITH (key_format = 'JSON') AS
SELECT
    origin,
    dest,
    COUNT(*) AS flights,
    AVG(arr_delay) AS mean_delay
FROM flights
GROUP BY origin, dest
EMIT CHANGES;

-- Each carrier so far: flights that were scheduled, flights that left, and how late they left.
CREATE TABLE carriers AS
SELECT
    carrier,
    COUNT(*) AS flights,
    COUNT(dep_time) AS departed,
    AVG(dep_delay) AS mean_delay
FROM flights
GROUP BY carrier
EMIT CHANGES;
