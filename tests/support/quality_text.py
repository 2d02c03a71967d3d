"""A fixed text in plain English and code, written for measuring perplexity: figures taken on it at different times can be compared."""

PASSAGES = (
    "The harbour was quiet when the first boats came back. Gulls walked along the wall and waited for the nets to be emptied. An old man "
    "sat on a crate and counted the boats, as he had done every morning for forty years. When the last one had tied up he closed his book, "
    "put the pencil behind his ear and went home to make coffee. Nobody had asked him to keep the list, but in the winter of the great "
    "storm it was his list that told the village which crew was missing, and where to look for them.",
    "Bread needs only four things: flour, water, salt and time. Mix the flour with three quarters of its weight in water and leave it for "
    "half an hour, so that the flour can soak. Then add the salt and a little of the dough you kept from last week. Fold it every thirty "
    "minutes until it holds its shape, and let it rest overnight in a cool place. In the morning heat the oven as far as it will go. The "
    "loaf is done when it sounds hollow if you knock on its underside.",
    "A river does not flow straight for long. Where the bank is a little softer on one side, the water cuts into it and the current moves "
    "over. On the inner side of the bend the water is slow and drops its sand. So the bend grows from year to year, until the river has "
    "nearly met itself again. In a flood it breaks through the narrow neck, and the old bend is left behind as a lake in the shape of a "
    "sickle, which fills with reeds and at last becomes a meadow.",
    'def moving_average(values, width):\n    """Mean of each window of `width` values."""\n    if width < 1:\n        raise '
    'ValueError("width must be at least 1")\n    total = sum(values[:width])\n    result = [total / width]\n    for i in range(width, '
    "len(values)):\n        total += values[i] - values[i - width]\n        result.append(total / width)\n    return result\n",
    "Question: Why is the sky blue at noon and red in the evening? Answer: Light from the sun contains all colours. Small molecules in "
    "the air scatter blue light more strongly than red light, so blue reaches our eyes from every direction of the sky. In the evening "
    "the sun stands low and its light takes a much longer way through the air. Most of the blue has been scattered out of the beam by "
    "then, and what is left for us to see is orange and red.",
    "The committee met on Tuesday to discuss the new library. Three of the seven members were in favour of the site beside the station, "
    "because students could reach it by train. Two preferred the old brewery, which the town already owns. The treasurer pointed out that "
    "repairing the roof of the brewery alone would cost more than the books. In the end the decision was put off until the engineers have "
    "looked at both buildings, which they promised to do before the end of March.",
    "To replace the battery, first switch the device off and remove the two screws at the back. Lift the cover with a flat tool, starting "
    "at the corner beside the plug. The battery is held by a strip of tape; pull the strip slowly and at a low angle, so that it does not "
    "tear. Disconnect the cable before you lift the battery out. Put the new battery in place, connect the cable and close the cover. "
    "Charge the device fully before you use it for the first time.",
    '{"order": 1043, "customer": {"name": "Anna Weber", "city": "Graz"}, "items": [{"product": "lamp", "count": 2, '
    '"price": 24.5}, {"product": "table", "count": 1, "price": 180.0}], "paid": true, "total": 229.0}\n{"order": 1044, '
    '"customer": {"name": "Luca Rossi", "city": "Turin"}, "items": [{"product": "chair", "count": 4, "price": 45.0}], '
    '"paid": false, "total": 180.0}',
    "A computer keeps numbers as patterns of switches that are either on or off. With eight switches there are two hundred and fifty-six "
    "patterns, enough for the letters of the alphabet, the digits and the signs between them. Larger numbers take more switches. Numbers "
    "with a fraction are written like those of an engineer: some digits, and how far the point has to be moved. That is why a computer can "
    "hold the distance to a star and the width of an atom in the same space, but neither of them exactly.",
    "My grandmother had a drawer for things that might be useful one day. It held string that was too short, keys without doors, the lid "
    "of a teapot that had been broken before I was born. When a button was lost we looked there first. Once, when the power failed during "
    "dinner, she opened the drawer in the dark and took out a candle and a box of matches without having to search. She sat down again and "
    "said that a house needs only one place where nothing is ever put in order.",
    "In 1928 a scientist came back from his holiday and found that a mould had grown on one of his dishes. Around the mould the bacteria "
    "had died. He gave the substance a name and wrote a short article, which few people read. Ten years later two chemists found a way to "
    "make enough of it to treat a patient. By the end of the war it was produced in tanks as large as houses, and wounds that had once been "
    "fatal had become a matter of a few days in bed.",
    "The rules of the game are simple. Each player gets seven cards and the rest lie face down in the middle. The youngest player begins. "
    "In your turn you may ask any other player for a card of a kind that you already hold. If he has one he must give it to you, and you "
    "may ask again. If he has none, you draw a card from the middle and the turn passes to the left. Whoever first has collected all four "
    "cards of three kinds has won the round.",
)
