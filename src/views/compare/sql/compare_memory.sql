-- The peak of all processes together, or of one between two samples.
SELECT greatest(
    (SELECT max(rss_bytes) FROM host.program),
    (SELECT max(greatest(peak_bytes, family_peak_bytes)) FROM host.process)
)
