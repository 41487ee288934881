//! Events of an auction house in Nexmark's proportions: of 50, one is a new person, 3 are new auctions and 46 are bids.
//!
//! INVARIANT: event `n` is a function of the seed and `n` alone. So events are the same in every run, whatever their order.
//!
//! Half of the bids go to the auction that is hot just then, three quarters come from the hot bidder; the others spread over the last auctions
//! and people. Prices are log-uniform. Event time advances evenly; with a disorder, an event is sent later than others by up to so much
//! event time.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::text::{push_instant, push_number};

/// Event time of event 0: 2015-07-15 00:00:00 UTC.
pub(super) const BASE_TIME: i64 = 1_436_918_400_000;
/// Events in a second of event time.
const RATE: u64 = 10_000;
/// Events of which one is a person and three are auctions.
const EPOCH: u64 = 50;
const AUCTIONS_IN_EPOCH: u64 = 3;
const FIRST_ID: u64 = 1_000;
const FIRST_CATEGORY: u64 = 10;
const CATEGORIES: u64 = 5;
/// Auctions that are bid for at a time, beside the hot one.
const AUCTIONS_IN_FLIGHT: u64 = 100;
/// People who are active at a time.
const ACTIVE_PEOPLE: u64 = 1_000;
/// Ids that are named before they exist.
const LEAD: u64 = 10;
/// The hot auction, seller and bidder change after so many.
const HOT_SPAN: u64 = 100;
/// Channels beside the four hot ones.
const CHANNELS: u64 = 10_000;
const HOT_CHANNELS: [&str; 4] = ["Google", "Facebook", "Baidu", "Apple"];
const STATES: [&str; 6] = ["AZ", "CA", "ID", "OR", "WA", "WY"];
const CITIES: [&str; 10] = [
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
];
const FIRST_NAMES: [&str; 11] = [
    "Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter",
];
const LAST_NAMES: [&str; 9] = [
    "Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris",
];

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Person,
    Auction,
    Bid,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Person, Self::Auction, Self::Bid];

    /// The name of the stream and its topic.
    pub(super) fn stream(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Auction => "auction",
            Self::Bid => "bid",
        }
    }
}

/// An event but for its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) number: u64,
    pub(super) kind: Kind,
    /// Milliseconds since 1970.
    pub(super) time: i64,
    /// The auction or person that it is about: events of one are kept in order.
    pub(super) subject: u64,
}

/// The events in the order in which they are sent.
pub(super) struct Events<'g> {
    generator: &'g Generator,
    next: u64,
    count: u64,
    disorder: u64,
    /// Events that are held back, by when they are sent.
    held: BinaryHeap<Reverse<(u64, u64)>>,
}

/// Makes events.
pub(super) struct Generator {
    seed: u64,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The first `count` events; `disorder` is in milliseconds.
    pub(super) fn events(&self, count: u64, disorder: u64) -> Events<'_> {
        Events {
            generator: self,
            next: 0,
            count,
            disorder,
            held: BinaryHeap::new(),
        }
    }

    /// Random numbers of their own for an event, or a part of it.
    fn dice(&self, number: u64, part: u64) -> Dice {
        Dice(mixed(self.seed ^ mixed(number)) ^ mixed(part))
    }

    fn event(&self, number: u64) -> Event {
        let (epoch, place) = (number / EPOCH, number % EPOCH);
        let (kind, subject) = match place {
            0 => (Kind::Person, epoch + FIRST_ID),
            1..=AUCTIONS_IN_EPOCH => (
                Kind::Auction,
                epoch * AUCTIONS_IN_EPOCH + place - 1 + FIRST_ID,
            ),
            _ => (Kind::Bid, self.bid_auction(number)),
        };
        Event {
            number,
            kind,
            time: time_of(number),
            subject,
        }
    }

    /// Appends the event as one line of JSON, without its end.
    pub(super) fn write(&self, event: &Event, out: &mut Vec<u8>) {
        match event.kind {
            Kind::Person => self.write_person(event, out),
            Kind::Auction => self.write_auction(event, out),
            Kind::Bid => self.write_bid(event, out),
        }
    }

    fn write_person(&self, event: &Event, out: &mut Vec<u8>) {
        let mut dice = self.dice(event.number, 1);
        let mut line = Line::begin(out, "id", event.subject);
        line.text("name", |out| {
            out.extend_from_slice(dice.one_of(&FIRST_NAMES).as_bytes());
            out.push(b' ');
            out.extend_from_slice(dice.one_of(&LAST_NAMES).as_bytes());
        });
        line.text("email_address", |out| {
            dice.letters(7, 7, out);
            out.push(b'@');
            dice.letters(5, 5, out);
            out.extend_from_slice(b".com");
        });
        line.text("credit_card", |out| {
            for group in 0..4 {
                if group > 0 {
                    out.push(b' ');
                }
                // Four digits each.
                push_number(10_000 + dice.below(10_000), out);
                let first = out.len() - 5;
                out.remove(first);
            }
        });
        line.text("city", |out| {
            out.extend_from_slice(dice.one_of(&CITIES).as_bytes());
        });
        line.text("state", |out| {
            out.extend_from_slice(dice.one_of(&STATES).as_bytes());
        });
        line.text("date_time", |out| push_instant(event.time, out));
        line.text("extra", |out| dice.letters(80, 120, out));
        line.end();
    }

    fn write_auction(&self, event: &Event, out: &mut Vec<u8>) {
        let mut dice = self.dice(event.number, 1);
        let epoch = event.number / EPOCH;
        let initial = dice.price();
        let reserve = initial + dice.price();
        // As long as the auctions in flight take.
        let horizon = (AUCTIONS_IN_FLIGHT * EPOCH / AUCTIONS_IN_EPOCH * 1_000 / RATE).max(1);
        let expires = event.time + 1 + dice.below(2 * horizon).cast_signed();
        let seller = match dice.below(4) {
            0 => dice.recent_person(epoch),
            _ => epoch / HOT_SPAN * HOT_SPAN,
        };
        let category = FIRST_CATEGORY + dice.below(CATEGORIES);
        let mut line = Line::begin(out, "id", event.subject);
        line.text("item_name", |out| dice.letters(3, 20, out));
        line.text("description", |out| dice.letters(3, 100, out));
        line.number("initial_bid", initial);
        line.number("reserve", reserve);
        line.text("date_time", |out| push_instant(event.time, out));
        line.text("expires", |out| push_instant(expires, out));
        line.number("seller", seller + FIRST_ID);
        line.number("category", category);
        line.text("extra", |out| dice.letters(260, 400, out));
        line.end();
    }

    /// The auction of a bid.
    fn bid_auction(&self, number: u64) -> u64 {
        let mut dice = self.dice(number, 0);
        let last = number / EPOCH * AUCTIONS_IN_EPOCH + AUCTIONS_IN_EPOCH - 1;
        let auction = match dice.below(2) {
            0 => {
                let first = last.saturating_sub(AUCTIONS_IN_FLIGHT);
                first + dice.below(last - first + 1 + LEAD)
            }
            _ => last / HOT_SPAN * HOT_SPAN,
        };
        auction + FIRST_ID
    }

    fn write_bid(&self, event: &Event, out: &mut Vec<u8>) {
        let mut dice = self.dice(event.number, 1);
        let epoch = event.number / EPOCH;
        let bidder = match dice.below(4) {
            0 => dice.recent_person(epoch),
            _ => epoch / HOT_SPAN * HOT_SPAN + 1,
        };
        let price = dice.price();
        let mut line = Line::begin(out, "auction", event.subject);
        line.number("bidder", bidder + FIRST_ID);
        line.number("price", price);
        let hot = dice.below(2) > 0;
        let channel = dice.below(if hot {
            HOT_CHANNELS.len() as u64
        } else {
            CHANNELS
        });
        line.text("channel", |out| {
            if hot {
                out.extend_from_slice(HOT_CHANNELS[channel as usize].as_bytes());
            } else {
                out.extend_from_slice(b"channel-");
                push_number(channel, out);
            }
        });
        // A channel has one URL; nine of ten that are not hot have an id in it.
        let mut of_channel = self.dice(channel, 2 + u64::from(hot));
        line.text("url", |out| {
            out.extend_from_slice(b"https://www.nexmark.com");
            for _ in 0..3 {
                out.push(b'/');
                of_channel.letters(5, 5, out);
            }
            out.extend_from_slice(b"/item.htm?query=1");
            if !hot && of_channel.below(10) > 0 {
                out.extend_from_slice(b"&channel_id=");
                push_number(of_channel.below(1 << 31), out);
            }
        });
        line.text("date_time", |out| push_instant(event.time, out));
        line.text("extra", |out| dice.letters(54, 82, out));
        line.end();
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        if self.disorder == 0 {
            let number = self.next;
            self.next += 1;
            return (number < self.count).then(|| self.generator.event(number));
        }
        // Held back until nothing that is still to come can be due earlier.
        loop {
            let horizon = (time_of(self.next) - BASE_TIME).cast_unsigned();
            let all_made = self.next >= self.count;
            match self.held.peek() {
                Some(Reverse((due, _))) if all_made || *due < horizon => {
                    let Reverse((_, number)) = self.held.pop()?;
                    return Some(self.generator.event(number));
                }
                None if all_made => return None,
                _ => {
                    let delay = self.generator.dice(self.next, 9).below(self.disorder + 1);
                    self.held.push(Reverse((horizon + delay, self.next)));
                    self.next += 1;
                }
            }
        }
    }
}

fn time_of(number: u64) -> i64 {
    BASE_TIME + (number * 1_000 / RATE).cast_signed()
}

/// An object that is being written.
struct Line<'o>(&'o mut Vec<u8>);

impl<'o> Line<'o> {
    fn begin(out: &'o mut Vec<u8>, name: &str, value: u64) -> Self {
        out.push(b'{');
        let mut line = Self(out);
        line.name(name);
        push_number(value, line.0);
        line
    }

    fn name(&mut self, name: &str) {
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    fn number(&mut self, name: &str, value: u64) {
        self.0.push(b',');
        self.name(name);
        push_number(value, self.0);
    }

    /// A field whose text needs no escapes.
    fn text(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.0.push(b',');
        self.name(name);
        self.0.push(b'"');
        write(self.0);
        self.0.push(b'"');
    }

    fn end(self) {
        self.0.push(b'}');
    }
}

/// The finaliser of SplitMix64.
pub(super) fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Random numbers (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `bound`, evenly but for one part in 2^32: bounds are small.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len() as u64) as usize]
    }

    /// Log-uniform from 100 to 100,000,000.
    fn price(&mut self) -> u64 {
        let part = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        (10f64.powf(part * 6.0) * 100.0).round() as u64
    }

    /// One of those who are active, or will come next.
    fn recent_person(&mut self, epoch: u64) -> u64 {
        let people = epoch + 1;
        let active = people.min(ACTIVE_PEOPLE);
        people - active + self.below(active + LEAD)
    }

    /// Between `least` and `most` small letters.
    fn letters(&mut self, least: u64, most: u64, out: &mut Vec<u8>) {
        let mut left = least + self.below(most - least + 1);
        while left > 0 {
            let mut bits = self.next();
            // Eight bits a letter: some letters are a little more frequent, which no query notices.
            for _ in 0..left.min(8) {
                out.push(b'a' + (((bits & 0xff) * 26) >> 8) as u8);
                bits >>= 8;
            }
            left = left.saturating_sub(8);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn lines(seed: u64, count: u64, disorder: u64) -> Vec<(Event, String)> {
        let generator = Generator::new(seed);
        let line = |event: Event| {
            let mut out = Vec::new();
            generator.write(&event, &mut out);
            (event, String::from_utf8(out).expect("ASCII"))
        };
        generator.events(count, disorder).map(line).collect()
    }

    #[test]
    fn a_seed_fixes_all_events() {
        assert_eq!(lines(42, 500, 0), lines(42, 500, 0));
        assert_ne!(lines(42, 500, 0), lines(43, 500, 0));
    }

    #[test]
    fn proportions_and_hot_keys_are_the_originals() {
        let events = lines(42, 50_000, 0);
        let of = |kind| events.iter().filter(move |(event, _)| event.kind == kind);
        assert_eq!(of(Kind::Person).count(), 1_000);
        assert_eq!(of(Kind::Auction).count(), 3_000);
        assert_eq!(of(Kind::Bid).count(), 46_000);
        let mut auctions: HashMap<u64, u64> = HashMap::new();
        let mut hot_bidders = 0;
        let mut hot_channels = 0;
        for (event, line) in of(Kind::Bid) {
            *auctions.entry(event.subject).or_default() += 1;
            let bid: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(bid["auction"], event.subject);
            let price = bid["price"].as_u64().expect("a number");
            assert!((100..=100_000_000).contains(&price), "{price}");
            hot_bidders += u32::from(bid["bidder"].as_u64().expect("a number") % 100 == 1);
            let channel = bid["channel"].as_str().expect("a text");
            hot_channels += u32::from(HOT_CHANNELS.contains(&channel));
        }
        // A hot auction lasts 33 epochs with 23 bids of each.
        let hottest = auctions.values().max().copied().unwrap_or(0);
        assert!((700..900).contains(&hottest), "{hottest}");
        let share = f64::from(hot_bidders) / 46_000.0;
        assert!((0.74..0.77).contains(&share), "{share}");
        let share = f64::from(hot_channels) / 46_000.0;
        assert!((0.48..0.52).contains(&share), "{share}");
    }

    #[test]
    fn every_line_is_an_object_with_its_columns() {
        for (event, line) in lines(7, 200, 0) {
            let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            let columns = value.as_object().expect("an object").len();
            let expected = match event.kind {
                Kind::Person => 8,
                Kind::Auction => 10,
                Kind::Bid => 7,
            };
            assert_eq!(columns, expected, "{line}");
        }
    }

    #[test]
    fn disorder_moves_events_by_no_more_than_it_says() {
        let in_order = lines(42, 20_000, 0);
        let mut shuffled = lines(42, 20_000, 50);
        let mut latest = i64::MIN;
        let mut late = 0;
        for (event, _) in &shuffled {
            latest = latest.max(event.time);
            assert!(latest - event.time <= 50);
            late += u32::from(event.time < latest);
        }
        assert!(late > 5_000, "{late}");
        shuffled.sort_by_key(|(event, _)| event.number);
        assert_eq!(shuffled, in_order);
    }
}
