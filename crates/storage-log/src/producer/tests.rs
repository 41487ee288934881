use super::*;

fn header(producer: ProducerFields, base_offset: i64, records: i32) -> BatchHeader {
    let mut builder = crate::batch::BatchBuilder::new();
    for _ in 0..records {
        builder.push(0, None, None, &[]);
    }
    *builder
        .finish(Some(producer))
        .stamp(Offset(base_offset))
        .header()
}

fn fields(id: i64, epoch: i16, base_sequence: i32) -> ProducerFields {
    ProducerFields {
        id: ProducerId(id),
        epoch,
        base_sequence,
        transactional: false,
    }
}

#[test]
fn sequences_wrap() {
    let partition = TopicPartition::new("t", 0);
    let mut table = ProducerTable::default();
    table.apply_records(&header(fields(1, 0, i32::MAX - 1), 100, 4));
    assert_eq!(
        table.state(ProducerId(1)).map(|state| state.last_sequence),
        Some(1)
    );
    assert_eq!(
        table.admit(&partition, fields(1, 0, 2), 1).expect("next"),
        Admission::New
    );
    let repeated = table
        .admit(&partition, fields(1, 0, i32::MAX - 1), 4)
        .expect("repeat");
    assert_eq!(repeated, Admission::Duplicate(Offset(100), Offset(103)));
    let part = table
        .admit(&partition, fields(1, 0, i32::MAX), 2)
        .expect("repeat of the middle");
    assert_eq!(part, Admission::Duplicate(Offset(101), Offset(102)));
    assert_eq!(
        table
            .admit(&partition, fields(1, 0, 5), 1)
            .expect_err("gap")
            .kind(),
        crate::ErrorKind::Sequence
    );
}

#[test]
fn the_longest_silent_are_forgotten_but_queries_and_open_transactions_stay() {
    let mut table = ProducerTable::default();
    table.apply_records(&header(fields(ProducerId::ENGINE_BASE, 0, 0), 0, 1));
    table.apply_records(&header(
        ProducerFields {
            transactional: true,
            ..fields(1, 0, 0)
        },
        1,
        1,
    ));
    for id in 2..100 {
        table.apply_records(&header(fields(id, 0, 0), id, 1));
        table.forget_beyond(40);
    }
    assert!(table.iter().count() <= 40);
    assert!(
        table.get(ProducerId(ProducerId::ENGINE_BASE)).is_some()
            && table.get(ProducerId(1)).is_some()
    );
    assert!(table.get(ProducerId(99)).is_some() && table.get(ProducerId(2)).is_none());
    assert_eq!(table.first_open_offset(), Some(1));
}
