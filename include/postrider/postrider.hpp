// SPDX-License-Identifier: Apache-2.0
// Everything. Single headers compile faster.
#pragma once

#include "postrider/async_logger.hpp"
#include "postrider/clock.hpp"
#include "postrider/error.hpp"
#include "postrider/event.hpp"
#include "postrider/event_bus.hpp"
#include "postrider/event_codec.hpp"
#include "postrider/event_log.hpp"
#include "postrider/event_manager.hpp"
#include "postrider/event_queue.hpp"
#include "postrider/listener.hpp"
#include "postrider/log.hpp"
#include "postrider/metrics.hpp"
#include "postrider/open.hpp"
#include "postrider/outbox.hpp"
#include "postrider/projection.hpp"
#include "postrider/queue_admin.hpp"
#include "postrider/retry_policy.hpp"
#include "postrider/storage.hpp"
#include "postrider/transaction.hpp"
