//! Lanes.

use super::super::example;
use super::super::operation::{Operation, Tag};
use super::super::parameter;
use baton_wire::{Lane, LaneList};
use serde_json::json;

pub fn list() -> Operation {
    Operation::new("listLanes", Tag::Lanes, "List lanes by name")
        .about("Those in which jobs stand, or have until a short time ago, and those that are paused.")
        .takes([parameter::order_by_name(), parameter::limit_names(), parameter::cursor()])
        .answers::<LaneList>(200, "A page of them.", json!({ "lanes": [example::lane(false)], "nextCursor": null }))
        .leads(&["getLane", "pauseLane", "resumeLane"], &[("lane", "$response.body#/lanes/0/lane")])
}

pub fn get() -> Operation {
    Operation::new("getLane", Tag::Lanes, "Show a lane")
        .takes([parameter::lane()])
        .answers::<Lane>(200, "The lane.", example::lane(false))
        .refuses(&["lane_not_found"])
}

pub fn pause() -> Operation {
    Operation::new("pauseLane", Tag::Lanes, "Stop handing out the lane's jobs")
        .about("What runs goes on. A lane in which no job stands can be paused for those that will.")
        .takes([parameter::lane()])
        .bare()
        .answers::<Lane>(200, "The lane.", example::lane(true))
        .refuses(&["out_of_scope"])
}

pub fn resume() -> Operation {
    Operation::new("resumeLane", Tag::Lanes, "Go on handing out the lane's jobs")
        .takes([parameter::lane()])
        .bare()
        .answers::<Lane>(200, "The lane.", example::lane(false))
        .refuses(&["out_of_scope"])
}
