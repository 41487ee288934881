//! What every plan must be, whatever the statement.

use arrow::datatypes::{DataType, TimeUnit};

use crate::{
    catalog::{Relation, WINDOWEND, WINDOWSTART},
    dataflow::{DataflowPlan, Node, NodeId, Operator},
    types::stored_type,
};

/// Checks a plan node by node, and its result against the relation.
pub fn check_plan(plan: &DataflowPlan, sink: Option<&Relation>) {
    for (position, node) in plan.nodes.iter().enumerate() {
        assert_eq!(
            node.id,
            NodeId(position as u32),
            "nodes are numbered by position"
        );
        let inputs: Vec<&Node> = node
            .inputs
            .iter()
            .map(|input| &plan.nodes[input.0 as usize])
            .collect();
        assert!(
            inputs.iter().all(|input| input.id < node.id),
            "inputs stand before readers"
        );
        assert!(node.slots > 0, "a node has slots");
        check_node(node, &inputs);
    }
    assert_eq!(
        plan.slots,
        plan.root().slots,
        "the result has the root's slots"
    );
    for column in &plan.key {
        assert!(
            *column < plan.root().schema.fields().len(),
            "key columns are columns of the result"
        );
    }
    if let Some(relation) = sink {
        check_sink(plan, relation);
    }
}

fn check_node(node: &Node, inputs: &[&Node]) {
    let input = inputs.first();
    match &node.operator {
        Operator::Source {
            relation,
            projection,
            ..
        } => {
            assert!(inputs.is_empty(), "a source reads no node");
            assert_eq!(
                projection.len(),
                node.schema.fields().len(),
                "a source gives what it projects"
            );
            let available = relation.columns.len() + 3;
            assert!(
                projection.iter().all(|column| *column < available),
                "columns and pseudo columns only"
            );
        }
        Operator::Filter { predicate } => {
            let input = input.expect("a filter has an input");
            assert_eq!(
                predicate.data_type(&input.schema).expect("typed"),
                DataType::Boolean
            );
            assert_eq!(node.schema, input.schema, "a filter changes no column");
        }
        Operator::Project { expressions } => {
            let input = input.expect("a projection has an input");
            assert_eq!(expressions.len(), node.schema.fields().len());
            for (expression, field) in expressions.iter().zip(node.schema.fields()) {
                assert_eq!(
                    expression.data_type(&input.schema).expect("typed"),
                    *field.data_type(),
                    "{}",
                    field.name()
                );
            }
        }
        Operator::AssignWindows { .. } => {
            check_windows(node, input.expect("windows have an input"))
        }
        Operator::Exchange { keys, slots, .. } => {
            let input = input.expect("an exchange has an input");
            assert_eq!(*slots, node.slots);
            assert!(keys.iter().all(|key| *key < input.schema.fields().len()));
            assert_eq!(node.schema, input.schema, "an exchange changes no column");
        }
        Operator::Retime { column, .. } => {
            assert!(*column < node.schema.fields().len());
        }
        Operator::Unnest { columns } => {
            assert_eq!(node.schema.fields().len(), columns.len());
        }
        Operator::SessionAggregate { group, calls, .. } => {
            assert_eq!(
                node.schema.fields().len(),
                group.len() + 2 + calls.len(),
                "group columns, bounds, then calls"
            );
        }
        Operator::Join {
            left, right, order, ..
        } => {
            let [left_input, right_input] = inputs else {
                panic!("a join has two inputs");
            };
            let fields = left_input
                .schema
                .fields()
                .iter()
                .chain(right_input.schema.fields());
            assert!(
                fields.eq(node.schema.fields()),
                "the left columns, then the right ones"
            );
            assert_eq!(left.len(), right.len());
            for (left, right) in left.iter().zip(right) {
                assert_eq!(
                    left_input.schema.field(*left).data_type(),
                    right_input.schema.field(*right).data_type()
                );
            }
            assert!(
                inputs.iter().all(|input| input.slots == node.slots),
                "both inputs are where the join is"
            );
            assert!(
                order
                    .iter()
                    .all(|column| *column < node.schema.fields().len())
            );
        }
        Operator::Aggregate {
            group,
            calls,
            window,
            ..
        } => {
            let input = input.expect("an aggregate has an input");
            assert_eq!(
                node.schema.fields().len(),
                group.len() + calls.len(),
                "group columns, then calls"
            );
            for (position, column) in group.iter().enumerate() {
                assert_eq!(
                    node.schema.field(position).data_type(),
                    input.schema.field(*column).data_type()
                );
            }
            for (call, field) in calls
                .iter()
                .zip(node.schema.fields().iter().skip(group.len()))
            {
                assert_eq!(call.output_type, *field.data_type());
                let used = call.argument.iter().chain(&call.filter);
                assert!(
                    used.into_iter()
                        .all(|column| *column < input.schema.fields().len())
                );
            }
            if window.is_some() {
                assert!(
                    matches!(input.operator, Operator::AssignWindows { .. }),
                    "windows are assigned just below"
                );
                let width = input.schema.fields().len();
                assert!(
                    group.ends_with(&[width - 2, width - 1]),
                    "the bounds are the last group columns"
                );
            }
        }
        Operator::Union => {
            for input in inputs {
                let types = |node: &Node| -> Vec<DataType> {
                    node.schema
                        .fields()
                        .iter()
                        .map(|field| field.data_type().clone())
                        .collect()
                };
                assert_eq!(
                    types(input),
                    types(node),
                    "inputs of a union have its types"
                );
            }
        }
    }
}

fn check_windows(node: &Node, input: &Node) {
    let width = input.schema.fields().len();
    assert_eq!(node.schema.fields()[..width], input.schema.fields()[..]);
    for (offset, name) in [WINDOWSTART, WINDOWEND].into_iter().enumerate() {
        let field = node.schema.field(width + offset);
        assert_eq!(
            (field.name().as_str(), field.data_type()),
            (name, &DataType::Timestamp(TimeUnit::Millisecond, None))
        );
    }
}

fn check_sink(plan: &DataflowPlan, relation: &Relation) {
    let schema = &plan.root().schema;
    assert_eq!(relation.kind, plan.kind);
    assert_eq!(relation.partitions, plan.slots, "one slot per partition");
    assert_eq!(
        relation.schema().fields(),
        schema.fields(),
        "the relation's columns are the result's"
    );
    assert_eq!(
        relation.key_columns(),
        plan.key,
        "the relation's key is the plan's"
    );
    for field in schema.fields() {
        assert_eq!(
            stored_type(field.data_type()).as_ref(),
            Some(field.data_type()),
            "{} is stored",
            field.name()
        );
    }
    assert_eq!(relation.window, plan.window);
    if plan.window.is_some() {
        let names: Vec<&str> = plan
            .key
            .iter()
            .map(|column| schema.field(*column).name().as_str())
            .collect();
        assert!(
            names.ends_with(&[WINDOWSTART, WINDOWEND]),
            "a windowed key ends with the bounds: {names:?}"
        );
    }
}
