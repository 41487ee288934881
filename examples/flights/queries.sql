-- Questions to the tables of flights.sql. Each answer is as of now: ask again while events come in.

-- The five worst hours.
SELECT windowstart, carrier, flights, mean_delay, max_delay
FROM delays_by_hour
WHERE flights >= 10
ORDER BY mean_delay DESC
LIMIT 5;

-- The busiest routes.
SELECT origin, dest, flights, mean_delay
FROM routes
ORDER BY flights DESC
LIMIT 8;

-- The airlines by name, and how many of their flights were cancelled.
SELECT a.name, c.flights, c.flights - c.departed AS cancelled, c.mean_delay
FROM carriers c
JOIN airlines a ON a.carrier = c.carrier
ORDER BY c.flights DESC;
