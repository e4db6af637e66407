-- The label of each torch module, if all modules of that name have one class: name and label.
(
    SELECT name, {include region_label} AS label
    FROM trace.regions
    WHERE source = 'torch'
    GROUP BY name, source
)
