// SPDX-License-Identifier: Apache-2.0
#include "dcb.hpp"

namespace dcb {

using namespace postrider;

namespace {

Projector<bool> course_exists(const std::string& course) {
  return {.query = Query::of({{.types = {"CourseDefined"}, .tags = {{"course", course}}}}),
          .initial = false,
          .apply = [](bool& exists, const StoredEvent&) { exists = true; }};
}

Projector<int> capacity_of(const std::string& course) {
  return {.query = Query::of(
              {{.types = {"CourseDefined", "CourseCapacityChanged"}, .tags = {{"course", course}}}}),
          .apply = [](int& capacity, const StoredEvent& event) {
            capacity = std::stoi(std::string(event.data()));
          }};
}

/// How many subscriptions have this tag.
Projector<int> subscriptions(const std::string& key, const std::string& value) {
  return {.query = Query::of({{.types = {"StudentSubscribed"}, .tags = {{key, value}}}}),
          .apply = [](int& count, const StoredEvent&) { ++count; }};
}

Projector<bool> subscribed(const std::string& student, const std::string& course) {
  return {.query = Query::of(
              {{.types = {"StudentSubscribed"}, .tags = {{"student", student}, {"course", course}}}}),
          .initial = false,
          .apply = [](bool& is, const StoredEvent&) { is = true; }};
}

void require(const CommandOutcome& outcome) {
  if (outcome.kind == CommandOutcome::Kind::conflict) throw Refused("too busy, try again");
}

}  // namespace

void Courses::define(const std::string& course, int capacity) {
  require(CommandExecutor(store_).execute([&](EventStore& store) {
    const auto model = store.project(course_exists(course));
    if (model.state()) throw Refused("course " + course + " exists already");
    return CommandResult::conditional(
        {AppendEvent::builder("CourseDefined").tag("course", course).data(std::to_string(capacity))},
        model.condition());
  }));
}

void Courses::change_capacity(const std::string& course, int capacity) {
  require(CommandExecutor(store_).execute([&](EventStore& store) {
    const auto model = store.project(course_exists(course), capacity_of(course));
    const auto& [exists, current] = model.states;
    if (!exists) throw Refused("course " + course + " does not exist");
    if (current == capacity) return CommandResult::nothing("that is its capacity already");
    return CommandResult::conditional(
        {AppendEvent::builder("CourseCapacityChanged").tag("course", course).data(std::to_string(capacity))},
        model.condition());
  }));
}

void Courses::subscribe(const std::string& student, const std::string& course) {
  require(CommandExecutor(store_, {.max_attempts = 100}).execute([&](EventStore& store) {
    const auto model =
        store.project(course_exists(course), capacity_of(course), subscriptions("course", course),
                      subscriptions("student", student), subscribed(student, course));
    const auto& [exists, capacity, in_course, of_student, already] = model.states;
    if (!exists) throw Refused("course " + course + " does not exist");
    if (in_course >= capacity) throw Refused("course " + course + " is fully booked");
    if (already) throw Refused(student + " is subscribed already");
    if (of_student >= courses_per_student) throw Refused(student + " has too many courses");
    return CommandResult::conditional(
        {AppendEvent::builder("StudentSubscribed").tag("student", student).tag("course", course)},
        model.condition());
  }));
}

}  // namespace dcb
