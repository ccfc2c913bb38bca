"""Many calls at once."""

import unittest

from soak import soak

SECONDS = 8


class Parallel(unittest.IsolatedAsyncioTestCase):
    async def test_no_reply_is_lost_or_another_sessions_and_memory_comes_back(self):
        outcome = await soak(SECONDS, warm_up_rounds=1, least=11)
        self.assertEqual(outcome.wrong, [])
        self.assertGreater(outcome.calls, 100)
        self.assertTrue(outcome.memory_came_back, str(outcome))


if __name__ == "__main__":
    unittest.main()
